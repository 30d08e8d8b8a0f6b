// The guest of the conformance kit in AssemblyScript: what tck.c does, by way of the binding's own
// classes, so that each of them is used by some case. Raw pointers are not a thing it can be told to use.

import { Biome, Files, JSON, KV, Outside, Request, host } from "../../../guest/assemblyscript/assembly";

// An argument of a step: bytes, a number, or the size of a buffer.
class Argument {
  bytes: ArrayBuffer = new ArrayBuffer(0);
  n: i64 = 0;
  buffer: i32 = -1;

  get text(): string {
    return String.UTF8.decode(this.bytes);
  }

  get u32(): u32 {
    return <u32>this.n;
  }
}

function unhex(digits: string, times: i32): ArrayBuffer {
  const n = digits.length / 2;
  const out = new Uint8Array(n * times);
  for (let i = 0; i < n * times; i++) out[i] = <u8>parseInt(digits.substr(2 * (i % n), 2), 16);
  return out.buffer;
}

function hex(data: ArrayBuffer): string {
  const bytes = Uint8Array.wrap(data);
  const parts: string[] = [];
  for (let i = 0; i < bytes.length; i++) parts.push(bytes[i].toString(16).padStart(2, "0"));
  return parts.join("");
}

let version = "";

function parse(word: string): Argument {
  const a = new Argument();
  const rest = word.substring(1);
  const kind = word.charAt(0);
  if (kind == "x") a.bytes = unhex(rest, 1);
  else if (kind == "r") a.bytes = unhex(rest.substring(rest.indexOf(":") + 1), <i32>parseInt(rest.substring(0, rest.indexOf(":"))));
  else if (kind == "n") a.n = I64.parseInt(rest);
  else if (kind == "b") a.buffer = <i32>parseInt(rest);
  else if (kind == "v") a.bytes = String.UTF8.encode(version);
  else throw new Error(word);
  return a;
}

// What is in the result register.
function register(meta: bool, most: u32): ArrayBuffer {
  const to = new ArrayBuffer(most);
  const ptr = changetype<usize>(to);
  const n = meta ? host.result_meta(ptr, 0, most) : host.result_read(ptr, 0, most);
  return to.slice(0, n < 0 ? 0 : <i32>n);
}

// The length of what is in the result register, unless the call was refused.
function length(errno: i32): i64 {
  return errno ? -errno : register(false, 65536).byteLength;
}

function done(errno: i32, value: i64 = 0): i64 {
  return errno ? -errno : value;
}

let filled: ArrayBuffer | null = null;

function fill(to: ArrayBuffer, value: i64): i64 {
  filled = to.slice(0, value < 0 ? 0 : <i32>value);
  return value;
}

function make(f: string, a: Argument[]): i64 {
  if (f == "input") return length(Biome.inputBytes().errno);
  if (f == "result_read") {
    const to = new ArrayBuffer(a[0].buffer);
    return fill(to, host.result_read(changetype<usize>(to), a[1].u32, a[0].buffer));
  }
  if (f == "result_meta") {
    const to = new ArrayBuffer(a[0].buffer);
    return fill(to, host.result_meta(changetype<usize>(to), a[1].u32, a[0].buffer));
  }
  if (f == "output") return done(Biome.outputBytes(a[0].bytes).errno);
  if (f == "error") {
    // Biome.fail says nothing of a refusal, so the kit looks itself.
    const code = a[0].bytes, message = a[1].bytes;
    const r = host.error(changetype<usize>(code), code.byteLength, changetype<usize>(message), message.byteLength);
    if (r == 0) Biome.fail(a[0].text, a[1].text);
    return r;
  }
  if (f == "log") {
    const message = a[1].bytes;
    if (a[0].n < 0 || a[0].n > 3) return host.log(<i32>a[0].n, changetype<usize>(message), message.byteLength);
    Biome.log(<i32>a[0].n, a[1].text);
    return 0;
  }
  if (f == "time_now") {
    const r = Biome.now();
    return done(r.errno, r.or(0));
  }
  if (f == "random") {
    const r = Biome.random(a[0].buffer);
    return fill(r.or(new ArrayBuffer(0)), done(r.errno, a[0].buffer));
  }
  if (f == "kv_get") {
    const r = KV.item(a[0].text);
    return r.ok ? r.value.value.byteLength : -r.errno;
  }
  if (f == "kv_put") return done(KV.put(a[0].text, a[1].bytes).errno);
  if (f == "kv_delete") return done(KV.delete(a[0].text).errno);
  if (f == "kv_list") return length(KV.list(a[0].text, a[1].text, a[2].u32).errno);
  if (f == "file_stat") return length(Files.stat(a[0].text).errno);
  if (f == "file_read") {
    const r = Files.read(a[0].text, a[1].n, a[2].u32);
    return r.ok ? r.value.data.byteLength : -r.errno;
  }
  if (f == "file_list") return length(Files.list(a[0].text, a[1].text, a[2].u32).errno);
  if (f == "file_create") return done(Files.create(a[0].text, a[1].bytes).errno);
  if (f == "file_write") return done(Files.write(a[0].text, a[1].bytes).errno);
  if (f == "file_replace") return done(Files.replace(a[0].text, a[1].text, a[2].bytes).errno);
  if (f == "file_edit") {
    const r = Files.edit(a[0].text, a[1].text, a[2].text, a[3].n == 1);
    return done(r.errno, r.or(0));
  }
  if (f == "file_copy") return done(Files.copy(a[0].text, a[1].text).errno);
  if (f == "file_move") return done(Files.move(a[0].text, a[1].text).errno);
  if (f == "file_remove") return done(Files.remove(a[0].text).errno);
  if (f == "file_mkdir") return done(Files.mkdir(a[0].text).errno);
  if (f == "file_grep") return length(Files.grep(a[0].text, a[1].text, a[2].u32).errno);
  if (f == "file_glob") return length(Files.glob(a[0].text, a[1].u32).errno);
  if (f == "capability_invoke") {
    const input = JSON.parse(a[1].text);
    const r = Outside.invoke(a[0].text, input ? input : JSON.null());
    if (r.errno == 23) assert(Outside.problem().textOf("code") != "");
    return length(r.errno);
  }
  if (f == "http_fetch") return fetch(a[0].text, a[1].bytes);
  if (f == "secret_hmac") {
    const r = Outside.hmac(a[0].text, a[1].bytes);
    return done(r.errno, r.or(new ArrayBuffer(0)).byteLength);
  }
  if (f == "audit_query") {
    const query = JSON.parse(a[0].text);
    return length(Outside.audit(query ? query : JSON.null()).errno);
  }
  throw new Error(f);
}

// A request the classes can express goes through them; what they cannot, as it is.
function fetch(text: string, body: ArrayBuffer): i64 {
  const document = JSON.parse(text);
  if (!document || document.textOf("url") == "") {
    const raw = String.UTF8.encode(text);
    return host.http_fetch(changetype<usize>(raw), raw.byteLength, changetype<usize>(body), body.byteLength);
  }
  const request = new Request(document.textOf("method"), document.textOf("url"));
  request.body = body;
  const r = Outside.fetch(request);
  if (!r.ok) return -r.errno;
  assert(r.value.status >= 200 && r.value.headers.length > 0);
  return r.value.body.byteLength;
}

function run(): i32 {
  const input = String.UTF8.decode(Biome.inputBytes().value);
  let script = input.substring(1, input.length - 1);
  const silent = script.startsWith("!");
  if (silent) script = script.substring(1);
  const report: string[] = [];
  const steps = script.split(";");
  for (let i = 0; i < steps.length; i++) {
    const words = steps[i].split(" ");
    const args: Argument[] = [];
    for (let j = 1; j < words.length; j++) args.push(parse(words[j]));
    filled = null;
    const value = make(words[0], args);
    if (silent) continue;
    const into = filled;
    let body = into ? into : register(false, 4096);
    const meta = into ? new ArrayBuffer(0) : register(true, 1024);
    const document = JSON.parse(String.UTF8.decode(meta));
    if (document) version = document.textOf("version");
    if (body.byteLength >= 4096) body = new ArrayBuffer(0);
    report.push("[" + value.toString() + ',"' + hex(body) + '","' + hex(meta) + '"]');
  }
  if (!silent) Biome.outputBytes(String.UTF8.encode("[" + report.join(",") + "]")).value;
  return 0;
}

export function call_run(): i32 {
  return run();
}

export function call_child(): i32 {
  return run();
}
