//! The guest of the conformance kit in Rust: what tck.c does, by way of the crate's own functions, so
//! that each of them is called by some case. Raw pointers are not a thing it can be told to use.

use ecotone::{call, files, kv, Errno, InvokeError, Level, Result};

/// An argument of a step.
enum Argument {
    Bytes(Vec<u8>),
    Number(i64),
    Buffer(usize),
}

use Argument::{Buffer, Bytes, Number};

impl Argument {
    fn parse(word: &str, version: &str) -> Argument {
        let rest = &word[1..];
        match &word[..1] {
            "x" => Bytes(unhex(rest)),
            "r" => {
                let (times, digits) = rest.split_once(':').expect("a colon");
                Bytes(unhex(digits).repeat(times.parse().expect("a number")))
            }
            "n" => Number(rest.parse().expect("a number")),
            "b" => Buffer(rest.parse().expect("a number")),
            "v" => Bytes(version.as_bytes().to_vec()),
            _ => panic!("{word}"),
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Bytes(b) => b,
            _ => panic!("not bytes"),
        }
    }

    fn text(&self) -> &str {
        core::str::from_utf8(self.bytes()).expect("UTF-8")
    }

    fn number(&self) -> i64 {
        match self {
            Number(n) => *n,
            _ => panic!("not a number"),
        }
    }
}

fn unhex(digits: &str) -> Vec<u8> {
    (0..digits.len() / 2).map(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).expect("hexadecimal")).collect()
}

fn hex(data: &[u8]) -> String {
    data.iter().map(|b| format!("{b:02x}")).collect()
}

/// What is in the result register.
fn register(copy: fn(&mut [u8], usize) -> Result<u64>, most: usize) -> Vec<u8> {
    let mut to = vec![0; most];
    let n = copy(&mut to, 0).unwrap_or(0);
    to.truncate(n as usize);
    to
}

fn length<T>(_: T) -> i64 {
    register(call::result_read, 64 << 10).len() as i64
}

/// Makes one call; a buffer the call filled is given back.
fn make(function: &str, a: &[Argument], filled: &mut Option<Vec<u8>>) -> Result<i64> {
    let mut fill = |n: usize, by: &dyn Fn(&mut [u8]) -> Result<i64>| {
        let mut to = vec![0; n];
        let value = by(&mut to)?;
        to.truncate(value as usize);
        *filled = Some(to);
        Ok(value)
    };
    let done = |_| 0;
    match (function, a) {
        ("input", []) => ecotone::input().map(length),
        ("result_read", [Buffer(n), Number(off)]) => fill(*n, &|to| call::result_read(to, *off as usize).map(|n| n as i64)),
        ("result_meta", [Buffer(n), Number(off)]) => fill(*n, &|to| call::result_meta(to, *off as usize).map(|n| n as i64)),
        ("output", [data]) => ecotone::output(data.bytes()).map(done),
        ("error", [code, message]) if message.bytes().len() > 4096 => call::error(code.bytes(), message.bytes()).map(|_| 0), // fail would cut it
        ("error", [code, message]) => ecotone::fail(code.text(), message.text()).map(done),
        ("log", [Number(level), message]) => {
            let level = match level {
                0 => Level::Debug,
                1 => Level::Info,
                2 => Level::Warn,
                3 => Level::Error,
                other => return call::log(*other as i32, message.bytes()).map(|_| 0),
            };
            ecotone::log(level, message.text());
            Ok(0)
        }
        ("time_now", []) => ecotone::now().map(|t| t as i64),
        ("random", [Buffer(n)]) => fill(*n, &|to| ecotone::random(to).map(|()| *n as i64)),
        ("kv_get", [key]) => kv::item(key.text()).map(|item| item.value.len() as i64),
        ("kv_put", [key, value]) => kv::put(key.text(), value.bytes()).map(done),
        ("kv_delete", [key]) => kv::delete(key.text()).map(done),
        ("kv_list", [prefix, after, Number(limit)]) => kv::list(prefix.text(), after.text(), *limit as u32).map(length),
        ("file_stat", [path]) => files::stat(path.text()).map(length),
        ("file_read", [path, Number(off), Number(len)]) => files::read(path.text(), *off as u64, *len as usize).map(|c| c.data.len() as i64),
        ("file_list", [path, after, Number(limit)]) => files::list(path.text(), after.text(), *limit as u32).map(length),
        ("file_create", [path, data]) => files::create(path.text(), data.bytes()).map(|_| 0),
        ("file_write", [path, data]) => files::write(path.text(), data.bytes()).map(|_| 0),
        ("file_replace", [path, version, data]) => files::replace(path.text(), version.text(), data.bytes()).map(|_| 0),
        ("file_edit", [path, old, new, all]) => files::edit(path.text(), old.text(), new.text(), all.number() == 1).map(|n| n as i64),
        ("file_copy", [from, to]) => files::copy(from.text(), to.text()).map(done),
        ("file_move", [from, to]) => files::rename(from.text(), to.text()).map(done),
        ("file_remove", [path]) => files::remove(path.text()).map(done),
        ("file_mkdir", [path]) => files::mkdir(path.text()).map(done),
        ("file_grep", [pattern, glob, Number(limit)]) => files::grep(pattern.text(), glob.text(), *limit as u32).map(length),
        ("file_glob", [glob, Number(limit)]) => files::glob(glob.text(), *limit as u32).map(length),
        ("capability_invoke", [reference, input]) => match ecotone::invoke(reference.text(), input.bytes()) {
            Ok(output) => Ok(output.len() as i64),
            Err(InvokeError::Refused(e)) => Err(e),
            Err(InvokeError::Failed(problem)) => {
                problem.text("code").expect("a problem document");
                Err(Errno::ECHILD)
            }
        },
        ("http_fetch", [request, body]) => fetch(request.bytes(), body.bytes()),
        ("secret_hmac", [name, message]) => ecotone::hmac(name.text(), message.bytes()).map(|sum| sum.len() as i64),
        ("audit_query", [query]) => ecotone::audit_query(&ecotone::json::parse(query.bytes()).expect("JSON")).map(length),
        _ => panic!("{function} with {} arguments", a.len()),
    }
}

/// A request the crate can express goes through it; what it cannot, as it is.
fn fetch(request: &[u8], body: &[u8]) -> Result<i64> {
    let document = ecotone::json::parse(request).expect("JSON");
    match (document.text("method"), document.text("url")) {
        (Ok(method), Ok(url)) => {
            let response = ecotone::fetch(&ecotone::Request { method, url, body, ..Default::default() })?;
            assert!(response.status >= 200 && !response.headers.is_empty());
            Ok(response.body.len() as i64)
        }
        _ => call::http_fetch(request, body).map(|n| n as i64),
    }
}

fn run() -> i32 {
    let input = ecotone::input().expect("an input");
    let script = core::str::from_utf8(&input).expect("UTF-8").trim_matches('"');
    let (silent, script) = match script.strip_prefix('!') {
        Some(rest) => (true, rest),
        None => (false, script),
    };
    let mut version = String::new();
    let mut report = Vec::new();
    for step in script.split(';') {
        let mut words = step.split(' ');
        let function = words.next().expect("a function");
        let arguments: Vec<Argument> = words.map(|w| Argument::parse(w, &version)).collect();
        let mut filled = None;
        let value = make(function, &arguments, &mut filled).unwrap_or_else(|e| -(e.number() as i64));
        if silent {
            continue;
        }
        let (body, meta) = match filled {
            Some(data) => (data, Vec::new()),
            None if matches!(arguments.first(), Some(Buffer(_))) => (Vec::new(), Vec::new()),
            None => (register(call::result_read, 4096), register(call::result_meta, 1024)),
        };
        if let Ok(document) = ecotone::json::parse(&meta) {
            version = document.text("version").unwrap_or("").to_string();
        }
        let body = if body.len() < 4096 { body } else { Vec::new() };
        report.push(format!("[{value},\"{}\",\"{}\"]", hex(&body), hex(&meta)));
    }
    if !silent {
        ecotone::output(format!("[{}]", report.join(",")).as_bytes()).expect("an output");
    }
    0
}

#[no_mangle]
pub extern "C" fn call_run() -> i32 {
    run()
}

#[no_mangle]
pub extern "C" fn call_child() -> i32 {
    run()
}
