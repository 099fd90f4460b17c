//! Makes the questions that the engine reads of what was asked.

use super::*;

pub(super) struct Builder<'a> {
    pub(super) text: &'a ModelText,
    pub(super) format: &'a QuestionFormat,
    pub(super) settings: &'a DecisionSettings,
    pub(super) priors: Option<&'a PriorCache>,
    pub(super) questions: Vec<LabelQuestion>,
    pub(super) owners: Vec<usize>,
}

impl Builder<'_> {
    pub(super) fn plan(&mut self, owner: usize, ask: &Ask) -> Result<Planned, ApiError> {
        let question = &*ask.question;
        let count = question.answers.count();
        let asked = usize::try_from(self.settings.rotations).unwrap_or(usize::MAX);
        let num_rotations = if question.has_free_order() {
            asked.min(count)
        } else {
            1
        };
        let codes = self.codes(question)?;
        let mut planned = Planned {
            question: Arc::clone(&ask.question),
            text: String::new(),
            labels: Vec::new(),
            label_token_ids: Vec::new(),
            orders: Vec::with_capacity(num_rotations),
        };
        for rotation in 0..num_rotations {
            let order = debias::rotated_order(count, rotation, num_rotations);
            let labels = labels(question, codes.as_deref(), &order);
            let text = self.question_text(question, &labels, &order);
            let index = self.add(owner, question, &ask.state, &ask.earlier, &text, &labels)?;
            let prior = match self.settings.prior {
                None => None,
                Some(Prior::ContentFree) => Some(self.prior(owner, ask, &text, &labels)?),
            };
            planned.orders.push(Order { index, prior });
            if rotation == 0 {
                (planned.text, planned.labels) = (text, labels);
                let own = self
                    .questions
                    .get(index)
                    .filter(|_| self.settings.diagnostics);
                planned.label_token_ids = own.map(|own| own.labels.clone()).unwrap_or_default();
            }
        }
        Ok(planned)
    }

    fn codes(&self, question: &Question) -> Result<Option<Vec<String>>, ApiError> {
        if self.settings.readout == Readout::Label || !question.has_free_order() {
            return Ok(None);
        }
        let count = question.answers.count();
        match code_labels(self.text.tokenizer(), count) {
            Some(codes) => Ok(Some(codes)),
            None => {
                let message = format!(
                    "`readout`: this model's vocabulary has no {count} codes of one length, as `{}` would need; use \"label\"",
                    question.path
                );
                Err(FieldError::new("readout", message).into())
            }
        }
    }

    fn question_text(&self, question: &Question, labels: &[String], order: &[usize]) -> String {
        let is_coded = self.settings.readout == Readout::Code;
        let listed_order = if question.described.is_some() {
            &[]
        } else {
            order
        };
        let listed = listed_order.iter().filter_map(|&option| {
            let label = labels.get(option)?.as_str();
            let (words, description) = match &question.answers {
                Answers::YesNo { yes, no } => {
                    let words = is_coded.then_some(YES_NO[option.min(1)]);
                    (words, [yes, no][option.min(1)].as_deref())
                }
                Answers::Choice(choices) => {
                    let choice = choices.get(option)?;
                    (
                        is_coded.then(|| choice.value.text()),
                        choice.description.as_deref(),
                    )
                }
                Answers::Score(levels) => {
                    let level = levels.get(option)?;
                    (Some(level.label.as_str()), level.description.as_deref())
                }
            };
            Some(Listed {
                label,
                words,
                description,
            })
        });
        let listed: Vec<Listed<'_>> = listed.collect();
        wording::question_text(question, &listed, self.settings.readout)
    }

    /// The label question of this text in this place.
    fn label_question(
        &self,
        question: &Question,
        asked: Asked<'_>,
        labels: &[String],
    ) -> Result<LabelQuestion, ApiError> {
        let rendered = self.format.render(asked, self.text)?;
        let placed = labels.iter().enumerate().map(|(index, label)| {
            self.format.label(label).map_err(|why| {
                let path = answer_path(question, index);
                ApiError::from(FieldError::new(path, format!("`{path}`: {why}")))
            })
        });
        let placed: Vec<String> = placed.collect::<Result<_, _>>()?;
        let placed: Vec<&str> = placed.iter().map(String::as_str).collect();
        let prompt = self.format.label_prompt(&rendered, self.text);
        let ends = &self.format.end_token_ids;
        tokenize_labels(self.text.tokenizer(), prompt, &placed, ends)
            .map_err(|error| label_error(question, error))
    }

    fn add(
        &mut self,
        owner: usize,
        question: &Question,
        state: &str,
        earlier: &[(String, String)],
        text: &str,
        labels: &[String],
    ) -> Result<usize, ApiError> {
        let asked = Asked {
            state,
            earlier,
            question: text,
        };
        let made = self.label_question(question, asked, labels)?;
        Ok(self.push(owner, made))
    }

    fn push(&mut self, owner: usize, question: LabelQuestion) -> usize {
        self.questions.push(question);
        self.owners.push(owner);
        self.questions.len() - 1
    }

    fn prior(
        &mut self,
        owner: usize,
        ask: &Ask,
        text: &str,
        labels: &[String],
    ) -> Result<PriorOf, ApiError> {
        let asked = Asked {
            state: "",
            earlier: &ask.earlier,
            question: text,
        };
        let question = self.label_question(&ask.question, asked, labels)?;
        if let Some(known) = self.priors.and_then(|priors| priors.get(&question)) {
            return Ok(PriorOf::Known(known));
        }
        let index = self.push(owner, question.clone());
        Ok(PriorOf::Read(index, Box::new(question)))
    }
}

/// What is answered for each option, in the caller's order; `order` says which option stands at which place, and so
/// which one has which code.
fn labels(question: &Question, codes: Option<&[String]>, order: &[usize]) -> Vec<String> {
    if let Some(codes) = codes {
        let mut labels = vec![String::new(); order.len()];
        for (option, code) in order.iter().zip(codes) {
            labels[*option].clone_from(code);
        }
        return labels;
    }
    match &question.answers {
        Answers::YesNo { .. } => YES_NO.map(str::to_owned).to_vec(),
        Answers::Choice(choices) => {
            let words = choices.iter().map(|choice| choice.value.text().to_owned());
            words.collect()
        }
        Answers::Score(levels) => (0..levels.len()).map(|level| level.to_string()).collect(),
    }
}
