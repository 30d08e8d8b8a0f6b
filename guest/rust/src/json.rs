//! As much JSON as a biome needs: a value, a strict parser and a writer.

use std::fmt::{self, Write};
use std::string::{String, ToString};
use std::vec::Vec;

/// One JSON value. Members of an object keep their order.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// null
    Null,
    /// true or false
    Bool(bool),
    /// Any number; whole ones are exact up to 2^53.
    Number(f64),
    /// A string.
    String(String),
    /// A list.
    Array(Vec<Value>),
    /// Names and values.
    Object(Vec<(String, Value)>),
}

/// Why something is not the JSON that was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl Value {
    /// A member of an object.
    pub fn get(&self, name: &str) -> Option<&Value> {
        match self {
            Value::Object(members) => members.iter().find(|(k, _)| k == name).map(|(_, v)| v),
            _ => None,
        }
    }

    /// A member that must be a string.
    pub fn text(&self, name: &str) -> Result<&str, Error> {
        self.get(name).and_then(Value::as_str).ok_or_else(|| Error(std::format!("{} is not a string", name)))
    }

    /// A member that must be a number.
    pub fn number(&self, name: &str) -> Result<f64, Error> {
        self.get(name).and_then(Value::as_f64).ok_or_else(|| Error(std::format!("{} is not a number", name)))
    }

    /// The string it is.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(s) => Some(s),
            _ => None,
        }
    }

    /// The number it is.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Number(n) => Some(*n),
            _ => None,
        }
    }

    /// The truth value it is.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(b) => Some(*b),
            _ => None,
        }
    }

    /// The elements of an array; none of anything else.
    pub fn items(&self) -> &[Value] {
        match self {
            Value::Array(list) => list,
            _ => &[],
        }
    }
}

impl From<&str> for Value {
    fn from(s: &str) -> Value {
        Value::String(s.to_string())
    }
}

impl From<String> for Value {
    fn from(s: String) -> Value {
        Value::String(s)
    }
}

impl From<f64> for Value {
    fn from(n: f64) -> Value {
        Value::Number(n)
    }
}

impl From<bool> for Value {
    fn from(b: bool) -> Value {
        Value::Bool(b)
    }
}

impl From<Vec<Value>> for Value {
    fn from(list: Vec<Value>) -> Value {
        Value::Array(list)
    }
}

/// An object of the given members.
pub fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::Object(members.into_iter().map(|(k, v)| (k.to_string(), v)).collect())
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Bool(b) => write!(f, "{}", b),
            Value::Number(n) if n.is_finite() => write!(f, "{}", n),
            Value::Number(_) => f.write_str("null"),
            Value::String(s) => quote(f, s),
            Value::Array(list) => {
                f.write_char('[')?;
                for (i, v) in list.iter().enumerate() {
                    if i > 0 {
                        f.write_char(',')?;
                    }
                    write!(f, "{}", v)?;
                }
                f.write_char(']')
            }
            Value::Object(members) => {
                f.write_char('{')?;
                for (i, (k, v)) in members.iter().enumerate() {
                    if i > 0 {
                        f.write_char(',')?;
                    }
                    quote(f, k)?;
                    write!(f, ":{}", v)?;
                }
                f.write_char('}')
            }
        }
    }
}

fn quote(f: &mut fmt::Formatter<'_>, s: &str) -> fmt::Result {
    f.write_char('"')?;
    for c in s.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{}", c)?,
            c if c < ' ' => write!(f, "\\u{:04x}", c as u32)?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}

/// Values nested deeper than this are refused.
const DEPTH: usize = 64;

/// Reads one JSON value, and nothing after it.
pub fn parse(data: &[u8]) -> Result<Value, Error> {
    let text = core::str::from_utf8(data).map_err(|_| Error("not UTF-8".into()))?;
    let mut p = Parser { text, at: 0 };
    let value = p.value(0)?;
    p.space();
    if p.at < text.len() {
        return Err(p.fault("there is more after the value"));
    }
    Ok(value)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn fault(&self, what: &str) -> Error {
        Error(std::format!("{} at byte {}", what, self.at))
    }

    fn peek(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    fn space(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
    }

    fn eat(&mut self, c: u8) -> bool {
        self.space();
        let there = self.peek() == c && self.at < self.text.len();
        self.at += there as usize;
        there
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, Error> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.fault("not a JSON value"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn value(&mut self, depth: usize) -> Result<Value, Error> {
        if depth > DEPTH {
            return Err(self.fault("nested too deep"));
        }
        self.space();
        match self.peek() {
            b'n' => self.word("null", Value::Null),
            b't' => self.word("true", Value::Bool(true)),
            b'f' => self.word("false", Value::Bool(false)),
            b'"' => self.string().map(Value::String),
            b'[' => self.array(depth),
            b'{' => self.object(depth),
            _ => self.number(),
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, Error> {
        self.at += 1;
        let mut list = Vec::new();
        if self.eat(b']') {
            return Ok(Value::Array(list));
        }
        loop {
            list.push(self.value(depth + 1)?);
            if self.eat(b']') {
                return Ok(Value::Array(list));
            }
            if !self.eat(b',') {
                return Err(self.fault("expected , or ]"));
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, Error> {
        self.at += 1;
        let mut members = Vec::new();
        if self.eat(b'}') {
            return Ok(Value::Object(members));
        }
        loop {
            self.space();
            if self.peek() != b'"' {
                return Err(self.fault("expected a name"));
            }
            let name = self.string()?;
            if !self.eat(b':') {
                return Err(self.fault("expected :"));
            }
            members.push((name, self.value(depth + 1)?));
            if self.eat(b'}') {
                return Ok(Value::Object(members));
            }
            if !self.eat(b',') {
                return Err(self.fault("expected , or }"));
            }
        }
    }

    fn number(&mut self) -> Result<Value, Error> {
        let start = self.at;
        while matches!(self.peek(), b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E') {
            self.at += 1;
        }
        let text = &self.text[start..self.at];
        let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
        let plain = matches!(digits, [b'0'] | [b'0', b'.' | b'e' | b'E', ..] | [b'1'..=b'9', ..]) && digits.last().map_or(false, u8::is_ascii_digit);
        match text.parse::<f64>() {
            Ok(n) if plain && n.is_finite() && !text.contains(".e") && !text.contains(".E") => Ok(Value::Number(n)),
            _ => Err(self.fault("not a JSON value")),
        }
    }

    fn string(&mut self) -> Result<String, Error> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = &self.text[self.at..];
            let plain = rest.find(|c: char| c == '"' || c == '\\' || c < ' ').ok_or_else(|| self.fault("a string without an end"))?;
            out.push_str(&rest[..plain]);
            self.at += plain;
            match self.peek() {
                b'"' => {
                    self.at += 1;
                    return Ok(out);
                }
                b'\\' => out.push(self.escape()?),
                _ => return Err(self.fault("a control character in a string")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Error> {
        self.at += 1;
        let c = self.peek();
        self.at += 1;
        Ok(match c {
            b'"' | b'\\' | b'/' => c as char,
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let high = self.hex()?;
                if !(0xd800..0xe000).contains(&high) {
                    return Ok(char::from_u32(high).unwrap_or('\u{fffd}'));
                }
                if high >= 0xdc00 || !self.text[self.at..].starts_with("\\u") {
                    return Ok('\u{fffd}');
                }
                let back = self.at;
                self.at += 2;
                let low = self.hex()?;
                if !(0xdc00..0xe000).contains(&low) {
                    self.at = back;
                    return Ok('\u{fffd}');
                }
                char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)).unwrap_or('\u{fffd}')
            }
            _ => return Err(self.fault("an unknown escape")),
        })
    }

    fn hex(&mut self) -> Result<u32, Error> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4).ok_or_else(|| self.fault("a short escape"))?;
        let mut code = 0;
        for d in digits {
            code = code * 16 + (*d as char).to_digit(16).ok_or_else(|| self.fault("an escape that is not hexadecimal"))?;
        }
        self.at += 4;
        Ok(code)
    }
}
