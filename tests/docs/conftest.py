"""The server that pages without one of their own talk to, started when the first asks."""

import pytest
import runner


def pytest_addoption(parser):
    parser.addoption("--write", action="store_true", help="write what comes out into the pages' outputs that are without …")


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory):
    running = []

    def get():
        if not running:
            folder = tmp_path_factory.mktemp("server")
            runner.make_folder(folder)
            running.append(runner.Server(runner.DEFAULT_SERVER, folder))
        return running[0]

    yield get
    for server in running:
        server.stop()
