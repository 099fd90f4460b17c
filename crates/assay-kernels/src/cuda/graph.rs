//! Work that is asked for again and again in the same shape, recorded once and replayed as one launch.
//!
//! A small model's decode is hundreds of kernels of a few microseconds; launching each by itself takes longer than
//! running it.

use std::collections::BTreeMap;

use cudarc::driver::CudaGraph;
use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode_enum as CaptureMode};

use super::{Cuda, CudaError};

/// Recordings that are kept; more shapes than that are no habit.
const MAX_RECORDINGS: usize = 64;

/// Recordings by the shape of the work.
#[derive(Debug, Default)]
pub struct Recordings<K> {
    by_shape: BTreeMap<K, Recording>,
    /// [`Cuda::num_growths`] when they were made: a buffer that has grown since lies elsewhere.
    num_growths: u64,
}

enum Recording {
    /// The shape was met once, which sized every buffer.
    Met,
    Recorded(Graph),
}

impl std::fmt::Debug for Recording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Met => "Met",
            Self::Recorded(_) => "Recorded",
        })
    }
}

struct Graph(CudaGraph);

// SAFETY: the graph is used through `&mut Recordings` only, so by one thread at a time, and the driver binds its context
// to whichever thread that is.
unsafe impl Send for Graph {}

impl<K: Ord> Recordings<K> {
    /// Does `work`, which only launches kernels on buffers that keep their place: as it is when its shape is met first,
    /// recording it the second time, from the recording later. Equal shapes must launch the same with the same arguments.
    pub fn run(&mut self, cuda: &Cuda, shape: K, work: impl FnOnce()) {
        if self.num_growths != cuda.num_growths() || self.by_shape.len() > MAX_RECORDINGS {
            self.by_shape.clear();
            self.num_growths = cuda.num_growths();
        }
        match self.by_shape.get(&shape) {
            None => {
                work();
                self.by_shape.insert(shape, Recording::Met);
            }
            Some(Recording::Met) => {
                if let Some(graph) = record(cuda, work) {
                    replay(cuda, &graph);
                    self.by_shape
                        .insert(shape, Recording::Recorded(Graph(graph)));
                }
            }
            Some(Recording::Recorded(Graph(graph))) => replay(cuda, graph),
        }
    }
}

/// The launches of `work`, none of which is run; `None` after a fault.
fn record(cuda: &Cuda, work: impl FnOnce()) -> Option<CudaGraph> {
    if cuda.has_failed() {
        return None;
    }
    let begun = cuda
        .stream
        .begin_capture(CaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    cuda.note(begun.map_err(CudaError::driver("recording")))?;
    work();
    let flags = CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    let graph = cuda.stream.end_capture(flags);
    cuda.note(graph.map_err(CudaError::driver("recording")))?
}

fn replay(cuda: &Cuda, graph: &CudaGraph) {
    if !cuda.has_failed() {
        let launched = graph.launch();
        cuda.note(launched.map_err(CudaError::driver("replaying")));
    }
}
