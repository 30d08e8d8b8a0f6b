//! tally: named counters that outlive an invocation. In Rust, with the standard library and no crate
//! but the binding.

use ecotone::json::{object, parse, Value};
use ecotone::{kv, Errno, Failure, Level};

const PREFIX: &str = "count/";

fn key(name: &str) -> String {
    format!("{PREFIX}{name}")
}

/// The counter's total; one that nobody counted is 0.
fn total(name: &str) -> Result<i64, Failure> {
    match kv::get(&key(name)) {
        Ok(value) => {
            let digits = String::from_utf8_lossy(&value);
            digits.parse().map_err(|_| Failure::new("COUNTER_DAMAGED", format!("{name} is not a number: {digits}")))
        }
        Err(Errno::ENOENT) => Ok(0),
        Err(e) => Err(e.into()),
    }
}

fn counter(name: &str, total: i64) -> Value {
    object([("name", name.into()), ("total", (total as f64).into())])
}

ecotone::capability!(add, |input| {
    let input = parse(input)?;
    let name = input.text("name")?;
    let by = input.get("by").and_then(Value::as_f64).unwrap_or(1.0) as i64;
    let sum = total(name)?.checked_add(by).filter(|n| n.abs() < 1 << 53).ok_or_else(|| Failure::new("COUNTER_FULL", "the total would be too large"))?;
    kv::put(&key(name), sum.to_string().as_bytes())?;
    if sum < 0 {
        ecotone::log(Level::Warn, format_args!("{name} is below zero"));
    }
    Ok(counter(name, sum))
});

ecotone::capability!(read, |input| {
    let input = parse(input)?;
    let name = input.text("name")?;
    Ok(counter(name, total(name)?))
});

ecotone::capability!(top, |input| {
    let limit = parse(input)?.get("limit").and_then(Value::as_f64).unwrap_or(10.0) as usize;
    let mut all = Vec::new();
    let mut after = String::new();
    loop {
        let (keys, more) = kv::list(PREFIX, &after, 0)?;
        for key in &keys {
            let name = &key[PREFIX.len()..];
            all.push((name.to_string(), total(name)?));
        }
        match keys.last() {
            Some(last) if more => after = last.clone(),
            _ => break,
        }
    }
    all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    all.truncate(limit);
    let counters: Vec<Value> = all.iter().map(|(name, total)| counter(name, *total)).collect();
    Ok(object([("counters", counters.into())]))
});
