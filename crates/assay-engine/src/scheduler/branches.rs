//! How far the branches behind one trunk are computed: bookkeeping alone, of no block and no limit.

use assay_models::TokenId;

/// Tokens that follow another branch's last token, or the trunk's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Index of the branch before; `None` for the trunk. Always a lower index: branches are listed depth first.
    pub parent: Option<usize>,
    /// Never empty.
    pub token_ids: Vec<TokenId>,
    /// Position of the first token whose row is wanted, from which on all are; `None` if none is.
    pub read_from: Option<usize>,
    /// Whether its tokens are a prompt's, and worth keeping in the prefix cache. Its parent's must be as well.
    pub is_cached: bool,
}

/// Where a branch is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BranchState {
    /// Holds no block.
    Pending,
    /// Has blocks and uncomputed tokens.
    Forked,
    /// Has its blocks for the branches behind it.
    Computed,
    /// It and all that follows it are computed; holds no block.
    Done,
}

/// All branches of a trunk.
#[derive(Debug)]
pub(super) struct Branches {
    branches: Vec<Branch>,
    states: Vec<BranchState>,
    /// Branches right behind each that are not done.
    num_children_left: Vec<usize>,
    /// Tokens that came from the prefix cache, the most of all times that each was forked.
    cached_tokens: Vec<usize>,
    /// All before it are done.
    first_undone: usize,
    num_path_blocks: usize,
}

impl Branches {
    /// `num_path_blocks` is what the dearest path needs beyond the trunk's blocks.
    ///
    /// # Panics
    /// If a branch is empty or does not come behind its parent.
    pub(super) fn new(branches: Vec<Branch>, num_path_blocks: usize) -> Self {
        let mut num_children_left = vec![0; branches.len()];
        for (index, branch) in branches.iter().enumerate() {
            assert!(!branch.token_ids.is_empty(), "branch {index} is empty");
            if let Some(parent) = branch.parent {
                assert!(parent < index, "branch {index} comes before its parent");
                num_children_left[parent] += 1;
            }
        }
        Self {
            states: vec![BranchState::Pending; branches.len()],
            cached_tokens: vec![0; branches.len()],
            num_children_left,
            branches,
            first_undone: 0,
            num_path_blocks,
        }
    }

    pub(super) fn num_path_blocks(&self) -> usize {
        self.num_path_blocks
    }

    pub(super) fn get(&self, index: usize) -> &Branch {
        &self.branches[index]
    }

    pub(super) fn cached_tokens(&self) -> &[usize] {
        &self.cached_tokens
    }

    /// Branches that a step can compute tokens of, depth first: those with blocks, and those whose parents are computed.
    pub(super) fn ready(&self) -> impl Iterator<Item = usize> {
        (self.first_undone..self.branches.len()).filter(|&index| match self.states[index] {
            BranchState::Forked => true,
            BranchState::Pending => {
                let parent = self.branches[index].parent;
                parent.is_none_or(|parent| self.states[parent] == BranchState::Computed)
            }
            BranchState::Computed | BranchState::Done => false,
        })
    }

    /// Whether a branch has blocks and uncomputed tokens.
    pub(super) fn is_forked(&self, index: usize) -> bool {
        self.states[index] == BranchState::Forked
    }

    /// Branches that hold blocks.
    pub(super) fn holding(&self) -> impl Iterator<Item = usize> {
        let holds = |state| matches!(state, BranchState::Forked | BranchState::Computed);
        (self.first_undone..self.branches.len()).filter(move |&index| holds(self.states[index]))
    }

    pub(super) fn fork(&mut self, index: usize, num_cached_tokens: usize) {
        self.states[index] = BranchState::Forked;
        let most = &mut self.cached_tokens[index];
        *most = (*most).max(num_cached_tokens);
    }

    /// Books that a branch gave its blocks back before it was done.
    pub(super) fn unfork(&mut self, index: usize) {
        self.states[index] = BranchState::Pending;
    }

    /// Books that a branch's own tokens are computed. Those that are done with it: itself if nothing follows it, and
    /// each before it of which it was the last.
    pub(super) fn compute(&mut self, index: usize) -> Vec<usize> {
        self.states[index] = BranchState::Computed;
        let mut done = Vec::new();
        let mut last = Some(index);
        while let Some(index) = last.filter(|&index| self.num_children_left[index] == 0) {
            self.states[index] = BranchState::Done;
            done.push(index);
            last = self.branches[index].parent;
            if let Some(parent) = last {
                self.num_children_left[parent] -= 1;
            }
        }
        while self.states.get(self.first_undone) == Some(&BranchState::Done) {
            self.first_undone += 1;
        }
        done
    }

    /// Whether `other` stands before `index` on its path.
    pub(super) fn is_before(&self, other: usize, index: usize) -> bool {
        let before = |&index: &usize| self.branches[index].parent;
        std::iter::successors(Some(index), before)
            .skip(1)
            .any(|at| at == other)
    }
}

#[cfg(test)]
mod tests {
    use super::{Branch, Branches};

    fn branch(parent: Option<usize>) -> Branch {
        Branch {
            parent,
            token_ids: vec![1],
            read_from: None,
            is_cached: false,
        }
    }

    #[test]
    fn a_branch_is_ready_behind_its_parent_and_done_with_its_last_child() {
        let parents = [None, Some(0), Some(1), Some(0), None];
        let mut branches = Branches::new(parents.map(branch).to_vec(), 0);
        let ready = |branches: &Branches| branches.ready().collect::<Vec<_>>();
        assert_eq!(ready(&branches), [0, 4]);
        branches.fork(0, 0);
        assert_eq!(ready(&branches), [0, 4]);
        assert_eq!(branches.compute(0), [0; 0]);
        assert_eq!(ready(&branches), [1, 3, 4]);
        branches.fork(3, 0);
        assert_eq!(branches.compute(3), [3]);
        branches.fork(1, 0);
        assert_eq!(branches.compute(1), [0; 0]);
        assert_eq!(branches.holding().collect::<Vec<_>>(), [0, 1]);
        assert!(branches.is_before(0, 2) && !branches.is_before(2, 0) && !branches.is_before(3, 2));
        // Preempted, all that is not done starts again; what is done stays so.
        for index in [0, 1] {
            branches.unfork(index);
        }
        assert_eq!(ready(&branches), [0, 4]);
        for index in [0, 1, 2] {
            branches.fork(index, index);
            let done = branches.compute(index);
            assert_eq!(
                done,
                if index == 2 {
                    vec![2, 1, 0]
                } else {
                    Vec::new()
                }
            );
        }
        assert_eq!(ready(&branches), [4]);
        assert_eq!(branches.cached_tokens(), [0, 1, 2, 0, 0]);
    }
}
