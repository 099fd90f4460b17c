//! Chat templates: a model's own Jinja source turned into a prompt for a list of messages.
//!
//! The source comes from a model file, so it is not trusted: it runs in a language without access to the
//! host, within a number of steps and of bytes, and it sees no clock. It is never taken from a request.

mod date;
mod environment;
mod error;
mod guard;
mod messages;
mod python;
mod reply_parsers;

use std::error::Error as _;
use std::io;

use minijinja::{Environment, Error, ErrorKind, Value};
use serde_json::{Map, Value as Json};

pub use date::{InvalidDate, TemplateDate};
pub use error::TemplateError;
pub use reply_parsers::{ReasoningParser, ToolParser, UnknownParser};

use crate::tokenizer::Tokenizer;
use environment::{Raised, environment};
use messages::{ArgumentsStyle, ContentStyle, Styles};

/// Longest source accepted; real ones have up to 40 KB.
const SOURCE_BYTES_MAX: usize = 256 << 10;

const NAME: &str = "chat";

/// Names that extra arguments may not take.
const OWN_NAMES: [&str; 7] = [
    "messages",
    "tools",
    "add_generation_prompt",
    "bos_token",
    "eos_token",
    "unk_token",
    "strftime_now",
];

/// The special tokens' texts that templates write.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TemplateTokens {
    /// `bos_token`; undefined in the template if `None`.
    pub bos: Option<String>,
    /// `eos_token`.
    pub eos: Option<String>,
    /// `unk_token`.
    pub unknown: Option<String>,
}

impl TemplateTokens {
    /// The special tokens of `tokenizer`.
    #[must_use]
    pub fn of(tokenizer: &Tokenizer) -> TemplateTokens {
        let text = |id: Option<u32>| {
            id.and_then(|id| tokenizer.token_text(id))
                .map(str::to_owned)
        };
        TemplateTokens {
            bos: text(tokenizer.bos()),
            eos: text(tokenizer.eos()),
            unknown: text(tokenizer.unknown()),
        }
    }
}

/// What one rendering may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TemplateLimits {
    /// Instructions of the template engine.
    pub steps: u64,
    /// Bytes of the prompt, and of any value made on the way.
    pub output_bytes: usize,
}

impl Default for TemplateLimits {
    /// Two million steps, some twenty times what a long conversation takes, and 4 MiB.
    fn default() -> TemplateLimits {
        TemplateLimits {
            steps: 2_000_000,
            output_bytes: 4 << 20,
        }
    }
}

/// Whether the prompt ends with the opening of the model's reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GenerationPrompt {
    /// It does.
    #[default]
    Add,
    /// It ends with the last message.
    Omit,
}

/// How messages are rendered.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RenderOptions {
    /// The opening of the reply.
    pub generation_prompt: GenerationPrompt,
    /// The tools offered, a list as in the API; the template sees none if `None`.
    pub tools: Option<Json>,
    /// `chat_template_kwargs` of the request, such as `enable_thinking`.
    pub arguments: Map<String, Json>,
    /// What `strftime_now` formats.
    pub date: TemplateDate,
}

/// A compiled chat template.
#[derive(Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    tokens: TemplateTokens,
    limits: TemplateLimits,
    styles: Styles,
    reasoning_parser: Option<ReasoningParser>,
    tool_parser: Option<ToolParser>,
}

impl ChatTemplate {
    /// Compiles `source` with the default limits.
    ///
    /// **Errors**: [`TemplateError::Syntax`], [`TemplateError::SourceTooLong`].
    pub fn new(source: &str, tokens: TemplateTokens) -> Result<ChatTemplate, TemplateError> {
        ChatTemplate::with_limits(source, tokens, TemplateLimits::default())
    }

    /// Compiles `source`; every rendering stays within `limits`.
    ///
    /// **Errors**: as [`ChatTemplate::new`].
    pub fn with_limits(
        source: &str,
        tokens: TemplateTokens,
        limits: TemplateLimits,
    ) -> Result<ChatTemplate, TemplateError> {
        if source.len() > SOURCE_BYTES_MAX {
            return Err(TemplateError::SourceTooLong {
                found: source.len(),
                max: SOURCE_BYTES_MAX,
            });
        }
        let reasoning_parser = reply_parsers::find_reasoning(source);
        let source = without_generation_tags(source);
        let guarded = guard::guard(&source).map_err(|unguardable| TemplateError::Syntax {
            line: source
                .bytes()
                .take(unguardable.at)
                .filter(|&byte| byte == b'\n')
                .count()
                + 1,
            message: unguardable.problem.to_owned(),
        })?;
        let mut environment = environment(limits);
        environment
            .add_template_owned(NAME, guarded)
            .map_err(|error| TemplateError::Syntax {
                line: error.line().unwrap_or(0),
                message: message(&error),
            })?;
        let mut template = ChatTemplate {
            environment,
            tokens,
            limits,
            styles: Styles {
                content: ContentStyle::Both,
                arguments: ArgumentsStyle::Object,
            },
            reasoning_parser,
            tool_parser: None,
        };
        template.styles = Styles::probe(|messages| {
            template
                .render_adapted(messages, &RenderOptions::default())
                .ok()
        });
        template.tool_parser = reply_parsers::find_tools(|messages, tools, opens_reply| {
            let generation_prompt = if opens_reply {
                GenerationPrompt::Add
            } else {
                GenerationPrompt::Omit
            };
            let options = RenderOptions {
                generation_prompt,
                tools: Some(tools.clone()),
                ..RenderOptions::default()
            };
            template.render(messages, &options).ok()
        });
        Ok(template)
    }

    /// The parser of the model's reasoning, if its template shows that it thinks.
    #[must_use]
    pub fn reasoning_parser(&self) -> Option<ReasoningParser> {
        self.reasoning_parser
    }

    /// The parser of the model's tool calls, if its template writes them in a way that is known.
    #[must_use]
    pub fn tool_parser(&self) -> Option<ToolParser> {
        self.tool_parser
    }

    /// Whether the template reads `tools`. One that does not can tell the model of none.
    #[must_use]
    pub fn takes_tools(&self) -> bool {
        self.environment
            .get_template(NAME)
            .is_ok_and(|template| template.undeclared_variables(false).contains("tools"))
    }

    /// The prompt for `messages`, a list of objects as in the API.
    ///
    /// Null or absent `content` is empty; lists of text parts, and tool-call arguments, take the form the
    /// template reads. **Errors**: every [`TemplateError`] about rendering; [`TemplateError::Refused`],
    /// [`TemplateError::Message`] and [`TemplateError::Argument`] are the caller's to mend.
    pub fn render(
        &self,
        messages: &Json,
        options: &RenderOptions,
    ) -> Result<String, TemplateError> {
        self.render_adapted(&self.styles.adapt(messages)?, options)
    }

    fn render_adapted(
        &self,
        messages: &Json,
        options: &RenderOptions,
    ) -> Result<String, TemplateError> {
        let template = self
            .environment
            .get_template(NAME)
            .map_err(|error| self.render_error(&error))?;
        let mut output = Prompt {
            text: Vec::new(),
            max: self.limits.output_bytes,
        };
        template
            .render_captured_to(self.context(messages, options)?, &mut output)
            .map_err(|error| self.render_error(&error))?;
        String::from_utf8(output.text).map_err(|error| TemplateError::Render {
            line: 0,
            message: error.to_string(),
        })
    }

    fn context(&self, messages: &Json, options: &RenderOptions) -> Result<Value, TemplateError> {
        let mut context: Vec<(String, Value)> = Vec::with_capacity(options.arguments.len() + 8);
        for (name, value) in &options.arguments {
            if OWN_NAMES.contains(&name.as_str()) {
                return Err(TemplateError::Argument {
                    field: format!("chat_template_kwargs.{name}"),
                    problem: "this name is the template's own".to_owned(),
                });
            }
            context.push((name.clone(), Value::from_serialize(value)));
        }
        let tokens = [
            ("bos_token", &self.tokens.bos),
            ("eos_token", &self.tokens.eos),
            ("unk_token", &self.tokens.unknown),
        ];
        for (name, text) in tokens {
            context.extend(
                text.as_ref()
                    .map(|text| (name.to_owned(), Value::from(text.as_str()))),
            );
        }
        let date = options.date;
        let strftime_now = move |format: String| {
            date.strftime(&format).ok_or_else(|| {
                Error::new(
                    ErrorKind::InvalidOperation,
                    format!("strftime format {format:?}"),
                )
            })
        };
        let generation_prompt = options.generation_prompt == GenerationPrompt::Add;
        // Absent tools and documents are none, not undefined: templates test for both.
        let tools = options
            .tools
            .as_ref()
            .map_or(Value::from(()), Value::from_serialize);
        context.push(("messages".to_owned(), Value::from_serialize(messages)));
        context.push(("tools".to_owned(), tools));
        context.push((
            "add_generation_prompt".to_owned(),
            Value::from(generation_prompt),
        ));
        context.push((
            "strftime_now".to_owned(),
            Value::from_function(strftime_now),
        ));
        if !options.arguments.contains_key("documents") {
            context.push(("documents".to_owned(), Value::from(())));
        }
        Ok(context.into_iter().collect())
    }

    fn render_error(&self, error: &Error) -> TemplateError {
        let mut cause = error.source();
        while let Some(source) = cause {
            if let Some(Raised(message)) = source.downcast_ref() {
                return TemplateError::Refused {
                    message: message.clone(),
                };
            }
            if let Some(inner) = source
                .downcast_ref::<Error>()
                .and_then(|inner| self.limit_error(inner))
            {
                return inner;
            }
            cause = source.source();
        }
        self.limit_error(error)
            .unwrap_or_else(|| TemplateError::Render {
                line: error.line().unwrap_or(0),
                message: message(error),
            })
    }

    fn limit_error(&self, error: &Error) -> Option<TemplateError> {
        match error.kind() {
            ErrorKind::OutOfFuel => Some(TemplateError::Steps {
                max: self.limits.steps,
            }),
            ErrorKind::WriteFailure => Some(TemplateError::Output {
                max: self.limits.output_bytes,
            }),
            _ => None,
        }
    }
}

/// The engine's words without its name for the template.
fn message(error: &Error) -> String {
    match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    }
}

/// The prompt as it grows, up to its limit.
struct Prompt {
    text: Vec<u8>,
    max: usize,
}

impl io::Write for Prompt {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.max - self.text.len() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// `{% generation %}` marks the reply for training and prints nothing: a block that is always taken.
fn without_generation_tags(source: &str) -> String {
    let mut text = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find("{%") {
        let (before, tag) = rest.split_at(at);
        text.push_str(before);
        let Some(end) = tag.find("%}") else {
            rest = tag;
            break;
        };
        let inner = &tag[2..end];
        let name = inner.trim_matches(|c: char| c.is_whitespace() || c == '-' || c == '+');
        match name {
            "generation" => text.extend(["{%", &inner.replace(name, "if true"), "%}"]),
            "endgeneration" => text.extend(["{%", &inner.replace(name, "endif"), "%}"]),
            _ => text.push_str(&tag[..end + 2]),
        }
        rest = &tag[end + 2..];
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generation_tags_keep_their_blank_control() {
        let source = "a {%- generation -%} b {% endgeneration +%}{% if x %}{% endif %}{% unclosed";
        let expected = "a {%- if true -%} b {% endif +%}{% if x %}{% endif %}{% unclosed";
        assert_eq!(without_generation_tags(source), expected);
    }
}
