//! The same soak through the door that people use: the real server on a socket, mixed calls of every route, streamed and
//! whole, with clients that hang up; each reply against the one that the same body gets alone.

mod bodies;
mod replies;
mod server;

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result};
use futures_util::StreamExt;

use crate::rig::Setup;
use crate::soak::{EPOCH_REQUESTS, EpochReport};
use crate::subject::Subject;
use crate::traffic::Traffic;

use bodies::{Call, Calls};
use replies::Reply;
use server::Server;

/// Runs epochs of one subject's calls.
pub struct HttpSoak {
    subject: Arc<Subject>,
    runtime: tokio::runtime::Runtime,
    client: reqwest::Client,
    /// One request at a time, nothing kept: what a request gets alone.
    alone: Server,
    known: BTreeMap<String, Arc<Reply>>,
    calls: Calls,
    /// For its engines.
    traffic: Traffic,
}

impl HttpSoak {
    /// Starts the server that gives the references.
    ///
    /// # Errors
    /// It does not start.
    pub fn new(subject: &Arc<Subject>, seed: u64, num_calls: u64) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        let alone = runtime.block_on(Server::start(subject, &Setup::reference()))?;
        Ok(Self {
            subject: Arc::clone(subject),
            client: reqwest::Client::new(),
            alone,
            known: BTreeMap::new(),
            calls: Calls::new(seed, num_calls),
            traffic: Traffic::new(subject, seed, 1, 1)?,
            runtime,
        })
    }

    /// Runs the first `num_requests` calls of epoch `index`, up to [`EPOCH_REQUESTS`], at a server of its own.
    ///
    /// # Errors
    /// The rig failed.
    pub fn run(&mut self, index: u64, num_requests: u64) -> Result<EpochReport> {
        let epoch = self.traffic.epoch(index);
        let num_requests = num_requests.min(EPOCH_REQUESTS);
        let calls: Vec<Call> = (0..num_requests)
            .map(|number| self.calls.call(index * EPOCH_REQUESTS + number))
            .collect();
        let server = self
            .runtime
            .block_on(Server::start(&self.subject, &epoch.setup))?;
        let url = server.url();
        let answers: Vec<(Call, Result<Option<Reply>>)> = self.runtime.block_on(async {
            futures_util::stream::iter(calls)
                .map(|call| {
                    let client = self.client.clone();
                    let url = url.clone();
                    async move {
                        let answer = replies::ask(&client, &url, &call).await;
                        (call, answer)
                    }
                })
                .buffer_unordered(epoch.num_clients)
                .collect()
                .await
        });
        let remains = self.runtime.block_on(server.stop())?;
        let mut report = EpochReport::default();
        report.counts.num_requests += num_requests;
        report.counts.add_remains(&remains);
        report.failures.extend(remains.faults);
        for (call, answer) in answers {
            let got = match answer {
                // The client hung up.
                Ok(None) => continue,
                Ok(Some(got)) => got,
                Err(error) => {
                    report.counts.num_faults += 1;
                    report
                        .failures
                        .push(format!("{error:#}: {} {}", call.path, call.body));
                    continue;
                }
            };
            let expected = self.reference(&call)?;
            report.counts.num_compared += 1;
            report.counts.num_tokens += expected.num_entries();
            if got != *expected {
                report.counts.num_differing += 1;
                report.counts.num_lost_entries +=
                    expected.num_entries().saturating_sub(got.num_entries());
                report
                    .failures
                    .push(format!("{}: got {got:?}, alone {expected:?}", call.body));
            }
        }
        Ok(report)
    }

    /// What a call gets alone, unstreamed.
    fn reference(&mut self, call: &Call) -> Result<Arc<Reply>> {
        let mut plain = call.body.clone();
        if let Some(members) = plain.as_object_mut() {
            for name in ["stream", "stream_options", "cache_salt"] {
                members.remove(name);
            }
        }
        let key = format!("{} {plain}", call.path);
        if let Some(known) = self.known.get(&key) {
            return Ok(Arc::clone(known));
        }
        let call = Call {
            path: call.path,
            body: plain,
            hangs_up_after: None,
        };
        let reply = self
            .runtime
            .block_on(replies::ask(&self.client, &self.alone.url(), &call))?
            .context("nobody hung up")?;
        let reply = Arc::new(reply);
        self.known.insert(key, Arc::clone(&reply));
        Ok(reply)
    }
}
