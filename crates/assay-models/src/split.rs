//! A network in parts: some of its layers on each of several devices, or on the CPU. Rows go from part to part over the
//! host, as they are, so where a layer is computed moves no bit.

use std::ops::Range;
use std::sync::Arc;

use assay_kernels::Compute;
use assay_kernels::cuda::Cuda;

use crate::forward::{ForwardBatch, ForwardError, Logits};
use crate::runner::Run;

/// Some layers of a network; the first have the embedding before them, the last the head behind them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) layers: Range<usize>,
    pub(crate) num_layers: usize,
}

impl Part {
    pub(crate) fn is_first(&self) -> bool {
        self.layers.start == 0
    }

    pub(crate) fn is_last(&self) -> bool {
        self.layers.end == self.num_layers
    }
}

/// Layers and where they are computed.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Layers of the model, counted from 0.
    pub layers: Range<usize>,
    /// The device; `None` for the CPU.
    pub cuda: Option<Arc<Cuda>>,
}

impl Stage {
    /// The stages of `num_layers` layers: the last `gpu_layers` of them (all, where `None`) in even parts on `devices`, in
    /// their order, the others before them on the CPU. The head is where the last layer is.
    pub fn split(num_layers: usize, devices: &[Arc<Cuda>], gpu_layers: Option<usize>) -> Vec<Self> {
        let on_devices = match devices {
            [] => 0,
            _ => gpu_layers.map_or(num_layers, |layers| layers.min(num_layers)),
        };
        let first = num_layers - on_devices;
        let edge = |index: usize| first + on_devices * index / devices.len().max(1);
        let on_cpu = Self {
            layers: 0..first,
            cuda: None,
        };
        let on_device = |(index, cuda): (usize, &Arc<Cuda>)| Self {
            layers: edge(index)..edge(index + 1),
            cuda: Some(Arc::clone(cuda)),
        };
        let stages = devices.iter().enumerate().map(on_device);
        let stages = std::iter::once(on_cpu).chain(stages);
        stages.filter(|stage| !stage.layers.is_empty()).collect()
    }
}

/// Parts that follow each other.
#[derive(Debug)]
pub(crate) struct Split {
    parts: Vec<Box<dyn Run>>,
    last: Box<dyn Run>,
}

impl Split {
    pub(crate) fn new(parts: Vec<Box<dyn Run>>, last: Box<dyn Run>) -> Self {
        Self { parts, last }
    }
}

impl Run for Split {
    fn forward_layers(
        &mut self,
        batch: &ForwardBatch,
        hidden: Option<Vec<f32>>,
    ) -> Result<(), ForwardError> {
        let mut hidden = hidden;
        for part in &mut self.parts {
            part.forward_layers(batch, hidden)?;
            hidden = Some(part.hidden());
        }
        self.last.forward_layers(batch, hidden)
    }

    fn hidden(&mut self) -> Vec<f32> {
        self.last.hidden()
    }

    fn head(&mut self, wanted: Range<usize>) -> Logits {
        self.last.head(wanted)
    }

    fn compute(&self) -> &Compute {
        self.last.compute()
    }
}
