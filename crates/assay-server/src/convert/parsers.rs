//! How the served model's replies are told apart, and what of that one request needs.

use assay_api::openai::{Conversation, ReasoningEffort, ToolChoice};
use assay_engine::output::format::{PYTHON_TAG, TOOL_CALL_TAGS};
use assay_engine::{ReasoningFormat, ReasoningTags, ReplyFormat, ToolCallFormat};
use assay_tokenizer::{
    ChatTemplate, EncodeOptions, ReasoningParser, SpecialText, SpecialTokens, Tokenizer, ToolParser,
};

use crate::config::ServerConfig;

/// A tag by itself, structure as it stands in a rendered template.
const TAG: EncodeOptions = EncodeOptions {
    add_special: SpecialTokens::Omit,
    parse_special: SpecialText::Parse,
};

/// Parsers of the served model.
#[derive(Debug)]
pub(crate) struct Parsers {
    reasoning: Option<ReasoningFormat>,
    tools: Option<ToolParser>,
    control_tags: Vec<(u32, &'static str)>,
}

impl Parsers {
    pub(crate) fn new(
        tokenizer: &Tokenizer,
        template: Option<&ChatTemplate>,
        config: &ServerConfig,
    ) -> Self {
        let reasoning = template.and_then(ChatTemplate::reasoning_parser);
        let reasoning = config.reasoning_parser.or(reasoning);
        let tools = template.and_then(ChatTemplate::tool_parser);
        let tags = [
            ReasoningTags::THINK.open,
            ReasoningTags::THINK.close,
            TOOL_CALL_TAGS.0,
            TOOL_CALL_TAGS.1,
            PYTHON_TAG,
        ];
        let control_tags = tags.into_iter().filter_map(|tag| {
            let id = tokenizer.token_id(tag)?;
            tokenizer.is_special(id).then_some((id, tag))
        });
        Self {
            reasoning: reasoning.and_then(|parser| reasoning_format(parser, tokenizer)),
            tools: config.tool_parser.or(tools),
            control_tags: control_tags.collect(),
        }
    }

    /// How calls of tools are read; `None` where it is not known how the model writes them.
    pub(crate) fn tools(&self) -> Option<ToolParser> {
        self.tools
    }

    /// The format of replies to `prompt`, a rendered conversation.
    pub(crate) fn format(&self, conversation: &Conversation, prompt: &str) -> ReplyFormat {
        let reasoning = self.reasoning.as_ref().and_then(|format| {
            let prompt = prompt.trim_end();
            // A template that does not want reasoning closes it before it began.
            if prompt.ends_with(format.tags.close) {
                return None;
            }
            let asked = conversation.reasoning;
            let budget = match asked.effort {
                Some(ReasoningEffort::None) => Some(0),
                _ => asked.budget,
            };
            Some(ReasoningFormat {
                is_open: prompt.ends_with(format.tags.open),
                budget,
                ..format.clone()
            })
        });
        let tools = &conversation.tools;
        let may_call = !tools.tools.is_empty() && tools.choice != ToolChoice::None;
        let names = || tools.tools.iter().map(|tool| tool.name.clone()).collect();
        let tool_calls = self.tools.filter(|_| may_call).map(|parser| match parser {
            ToolParser::Hermes => ToolCallFormat::Hermes,
            ToolParser::QwenXml => ToolCallFormat::QwenXml,
            ToolParser::Llama3Json => ToolCallFormat::Llama3Json { names: names() },
        });
        let control_tags = if reasoning.is_some() || tool_calls.is_some() {
            self.control_tags.clone()
        } else {
            Vec::new()
        };
        ReplyFormat {
            reasoning,
            tool_calls,
            call_constraint: None,
            at_most_one_call: tools.at_most_one_call,
            control_tags,
        }
    }
}

/// `None` where the vocabulary cannot write the tags.
fn reasoning_format(parser: ReasoningParser, tokenizer: &Tokenizer) -> Option<ReasoningFormat> {
    let tags = match parser {
        ReasoningParser::Think => ReasoningTags::THINK,
    };
    let ids = |tag: &str| {
        let ids = tokenizer.encode(tag, TAG).ok()?;
        (!ids.is_empty()).then_some(ids)
    };
    Some(ReasoningFormat {
        tags,
        is_open: false,
        budget: None,
        open_token_ids: ids(tags.open)?,
        close_token_ids: ids(tags.close)?,
    })
}
