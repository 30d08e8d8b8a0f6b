// The Ecotone ABI for biomes in AssemblyScript.
//
//   import { Biome, JSON } from "ecotone/assembly";
//
//   export function greet(): i32 {
//     const name = Biome.input().textOf("name");
//     if (name == "") return Biome.fail("NAME_MISSING", "whom shall I greet?");
//     return Biome.output(JSON.object().set("greeting", JSON.string("hello " + name)));
//   }
//
// Build it with
//
//   asc greet.ts -Oz --runtime stub --exportStart _initialize --use abort=ecotone/assembly/index/abort -o greet.wasm
//
// A refusal is a value: host calls give a Result, with the error number or with what was asked for.
// Every invocation begins with the memory the module was initialised with, so the runtime that never
// frees is the right one.

import * as host from "./host";
import { Errno, Result, errnoName } from "./result";
import { JSON } from "./json";

export { Errno, Result, errnoName } from "./result";
export { JSON, Kind, quote } from "./json";
export { host };

// A failed assertion and a thrown error end here: the caller is told, and the module ends.
export function abort(message: string | null = null, fileName: string | null = null, line: u32 = 0, column: u32 = 0): void {
  const text = (message ? message : "aborted") + (fileName ? " at " + fileName + ":" + line.toString() : "");
  Biome.fail("PANIC", text);
  unreachable();
}

// A string's or a buffer's bytes, as host functions take them.
class Bytes {
  readonly ptr: usize;
  readonly len: u32;

  constructor(private readonly keep: ArrayBuffer) {
    this.ptr = changetype<usize>(keep);
    this.len = <u32>keep.byteLength;
  }

  static of(text: string): Bytes {
    return new Bytes(String.UTF8.encode(text));
  }
}

const EMPTY = new ArrayBuffer(0);
const STEP: u32 = 4096;

function errnoOf(returned: i64): i32 {
  return returned < 0 ? <i32>-returned : Errno.OK;
}

function register(meta: bool): ArrayBuffer {
  let size = STEP;
  let all = new ArrayBuffer(size);
  let have: u32 = 0;
  while (true) {
    const to = changetype<usize>(all) + have;
    const n = meta ? host.result_meta(to, have, size - have) : host.result_read(to, have, size - have);
    if (n < 0) return EMPTY;
    have += <u32>n;
    if (have < size) return all.slice(0, have);
    all = join(all, new ArrayBuffer(size));
    size *= 2;
  }
}

function join(a: ArrayBuffer, b: ArrayBuffer): ArrayBuffer {
  const all = new ArrayBuffer(a.byteLength + b.byteLength);
  memory.copy(changetype<usize>(all), changetype<usize>(a), a.byteLength);
  memory.copy(changetype<usize>(all) + a.byteLength, changetype<usize>(b), b.byteLength);
  return all;
}

function utf8(data: ArrayBuffer): string {
  return String.UTF8.decode(data);
}

function document(data: ArrayBuffer): JSON {
  const v = JSON.parse(utf8(data));
  return v ? v : JSON.null();
}

// What a call left in the result register.
function body(returned: i64): Result<ArrayBuffer> {
  const errno = errnoOf(returned);
  return new Result<ArrayBuffer>(errno, errno == Errno.OK ? register(false) : EMPTY);
}

function value(returned: i64): Result<i64> {
  return new Result<i64>(errnoOf(returned), returned);
}

function version(returned: i64): Result<string> {
  const errno = errnoOf(returned);
  return new Result<string>(errno, errno == Errno.OK ? document(register(true)).textOf("version") : "");
}

// A page of a listing.
export class Page<T> {
  constructor(
    readonly items: T[],
    readonly more: bool,
  ) {}
}

function page<T>(returned: i64, make: (v: JSON) => T): Result<Page<T>> {
  const errno = errnoOf(returned);
  const items: T[] = [];
  let more = false;
  if (errno == Errno.OK) {
    const list = document(register(false));
    for (let i = 0; i < list.length; i++) items.push(make(list.at(i)));
    more = document(register(true)).truthOf("more");
  }
  return new Result<Page<T>>(errno, new Page<T>(items, more));
}

// How much a log record matters.
export enum Level {
  Debug,
  Info,
  Warn,
  Error,
}

// The invocation itself.
export class Biome {
  // The input as bytes, one JSON value.
  static inputBytes(): Result<ArrayBuffer> {
    return body(host.input());
  }

  // The input. The host has checked it against the capability's schema.
  static input(): JSON {
    return document(Biome.inputBytes().value);
  }

  // Sets the output and is the result of the export.
  static output(v: JSON): i32 {
    const r = Biome.outputBytes(String.UTF8.encode(v.toString()));
    return r.ok ? 0 : Biome.refused(r.errno, "the output was refused");
  }

  static outputBytes(data: ArrayBuffer): Result<i64> {
    const b = new Bytes(data);
    return value(host.output(b.ptr, b.len));
  }

  // Reports the capability's own failure and is the result of the export. The code is 1 to 64 bytes
  // of A-Z, 0-9 and _.
  static fail(code: string, message: string): i32 {
    const c = Bytes.of(code), m = Bytes.of(message);
    host.error(c.ptr, c.len, m.ptr, m.len < 4096 ? m.len : 4096);
    return 1;
  }

  // Reports a refusal of the host under its own name.
  static refused(errno: i32, doing: string): i32 {
    return Biome.fail(errnoName(errno), doing);
  }

  // Adds one record to the log. Logging never fails a capability.
  static log(level: Level, message: string): void {
    const m = Bytes.of(message);
    host.log(level, m.ptr, m.len);
  }

  // The host's clock, coarse: nanoseconds since 1970-01-01T00:00:00Z.
  static now(): Result<i64> {
    return value(host.time_now());
  }

  // n bytes from the host's cryptographic source.
  static random(n: u32): Result<ArrayBuffer> {
    const to = new ArrayBuffer(n);
    return new Result<ArrayBuffer>(errnoOf(host.random(changetype<usize>(to), n)), to);
  }
}

// A stored value and what the host says of it.
export class Item {
  constructor(
    readonly value: ArrayBuffer,
    readonly version: string,
    readonly classification: string,
  ) {}
}

// The durable keys of the biome, in the session's space.
export class KV {
  static get(key: string): Result<ArrayBuffer> {
    const k = Bytes.of(key);
    return body(host.kv_get(k.ptr, k.len));
  }

  static text(key: string): Result<string> {
    const r = KV.get(key);
    return new Result<string>(r.errno, utf8(r.or(EMPTY)));
  }

  static item(key: string): Result<Item> {
    const r = KV.get(key);
    const meta = r.ok ? document(register(true)) : JSON.null();
    return new Result<Item>(r.errno, new Item(r.or(EMPTY), meta.textOf("version"), meta.textOf("classification")));
  }

  static put(key: string, data: ArrayBuffer): Result<i64> {
    const k = Bytes.of(key), v = new Bytes(data);
    return value(host.kv_put(k.ptr, k.len, v.ptr, v.len));
  }

  static putText(key: string, text: string): Result<i64> {
    return KV.put(key, String.UTF8.encode(text));
  }

  static delete(key: string): Result<i64> {
    const k = Bytes.of(key);
    return value(host.kv_delete(k.ptr, k.len));
  }

  // The keys that begin with prefix and follow the key after, at most limit of them (0 for as many as
  // the host lists at once).
  static list(prefix: string, after: string = "", limit: u32 = 0): Result<Page<string>> {
    const p = Bytes.of(prefix), a = Bytes.of(after);
    return page<string>(host.kv_list(p.ptr, p.len, a.ptr, a.len, limit), (v: JSON): string => v.text());
  }
}

// Describes a file or directory.
export class Info {
  constructor(
    readonly kind: string,
    readonly size: i64,
    readonly version: string,
    readonly classification: string,
  ) {}
}

// One name of a directory.
export class Entry {
  constructor(
    readonly name: string,
    readonly kind: string,
    readonly size: i64,
  ) {}
}

// A part of a file.
export class Chunk {
  constructor(
    readonly data: ArrayBuffer,
    readonly size: i64,
    readonly version: string,
    readonly eof: bool,
  ) {}
}

// One matching line.
export class Match {
  constructor(
    readonly path: string,
    readonly line: i32,
    readonly text: string,
  ) {}
}

// The workspace of the session. Paths are relative, with forward slashes.
export class Files {
  static stat(path: string): Result<Info> {
    const p = Bytes.of(path);
    const r = body(host.file_stat(p.ptr, p.len));
    const v = document(r.or(EMPTY));
    return new Result<Info>(r.errno, new Info(v.textOf("kind"), <i64>v.numberOf("size"), v.textOf("version"), v.textOf("classification")));
  }

  // At most len bytes from off.
  static read(path: string, off: i64, len: u32): Result<Chunk> {
    const p = Bytes.of(path);
    const r = body(host.file_read(p.ptr, p.len, off, len));
    const meta = r.ok ? document(register(true)) : JSON.null();
    return new Result<Chunk>(r.errno, new Chunk(r.or(EMPTY), <i64>meta.numberOf("size"), meta.textOf("version"), meta.truthOf("eof")));
  }

  // The text of a whole file. EVERSION: it changed while it was being read.
  static text(path: string): Result<string> {
    let all = EMPTY;
    let version = "";
    while (true) {
      const r = Files.read(path, all.byteLength, 1 << 20);
      if (!r.ok) return new Result<string>(r.errno, "");
      const c = r.value;
      if (version != "" && version != c.version) return new Result<string>(Errno.EVERSION, "");
      version = c.version;
      all = join(all, c.data);
      if (c.eof || c.data.byteLength == 0) return new Result<string>(Errno.OK, utf8(all));
    }
  }

  static list(path: string, after: string = "", limit: u32 = 0): Result<Page<Entry>> {
    const p = Bytes.of(path), a = Bytes.of(after);
    return page<Entry>(
      host.file_list(p.ptr, p.len, a.ptr, a.len, limit),
      (v: JSON): Entry => new Entry(v.textOf("name"), v.textOf("kind"), <i64>v.numberOf("size")),
    );
  }

  // Makes a file that must not exist; its version.
  static create(path: string, data: ArrayBuffer): Result<string> {
    const p = Bytes.of(path), d = new Bytes(data);
    return version(host.file_create(p.ptr, p.len, d.ptr, d.len));
  }

  // Makes the file, or replaces the version this session read or wrote last; the new version.
  static write(path: string, data: ArrayBuffer): Result<string> {
    const p = Bytes.of(path), d = new Bytes(data);
    return version(host.file_write(p.ptr, p.len, d.ptr, d.len));
  }

  // Replaces exactly the named version; the new one.
  static replace(path: string, old: string, data: ArrayBuffer): Result<string> {
    const p = Bytes.of(path), o = Bytes.of(old), d = new Bytes(data);
    return version(host.file_replace(p.ptr, p.len, o.ptr, o.len, d.ptr, d.len));
  }

  // Replaces one exact occurrence of old, or with all every one; how many.
  static edit(path: string, old: string, replacement: string, all: bool = false): Result<i64> {
    const p = Bytes.of(path), o = Bytes.of(old), n = Bytes.of(replacement);
    return value(host.file_edit(p.ptr, p.len, o.ptr, o.len, n.ptr, n.len, all ? 1 : 0));
  }

  static copy(from: string, to: string): Result<i64> {
    const f = Bytes.of(from), t = Bytes.of(to);
    return value(host.file_copy(f.ptr, f.len, t.ptr, t.len));
  }

  static move(from: string, to: string): Result<i64> {
    const f = Bytes.of(from), t = Bytes.of(to);
    return value(host.file_move(f.ptr, f.len, t.ptr, t.len));
  }

  static remove(path: string): Result<i64> {
    const p = Bytes.of(path);
    return value(host.file_remove(p.ptr, p.len));
  }

  // Makes a directory that must not exist, with the directories above it.
  static mkdir(path: string): Result<i64> {
    const p = Bytes.of(path);
    return value(host.file_mkdir(p.ptr, p.len));
  }

  // The lines that match pattern (RE2) in the files that glob names.
  static grep(pattern: string, glob: string, limit: u32 = 0): Result<Page<Match>> {
    const p = Bytes.of(pattern), g = Bytes.of(glob);
    return page<Match>(
      host.file_grep(p.ptr, p.len, g.ptr, g.len, limit),
      (v: JSON): Match => new Match(v.textOf("path"), <i32>v.numberOf("line"), v.textOf("text")),
    );
  }

  static glob(glob: string, limit: u32 = 0): Result<Page<string>> {
    const g = Bytes.of(glob);
    return page<string>(host.file_glob(g.ptr, g.len, limit), (v: JSON): string => v.text());
  }
}

// One HTTP request.
export class Request {
  headers: Map<string, string> = new Map<string, string>();
  secret: string = ""; // the name of a secret that the host puts in
  body: ArrayBuffer = EMPTY;

  constructor(
    readonly method: string,
    readonly url: string,
  ) {}
}

// What came back, whatever its status.
export class Response {
  constructor(
    readonly status: i32,
    readonly headers: JSON, // names are in lower case
    readonly body: ArrayBuffer,
  ) {}
}

// What is outside the invocation.
export class Outside {
  // Invokes another capability. ECHILD: it ran and failed; Outside.problem says why.
  static invoke(ref: string, input: JSON): Result<JSON> {
    const r = Bytes.of(ref), i = Bytes.of(input.toString());
    const answer = body(host.capability_invoke(r.ptr, r.len, i.ptr, i.len));
    return new Result<JSON>(answer.errno, document(answer.or(EMPTY)));
  }

  // The problem document of the child that failed last.
  static problem(): JSON {
    return document(register(false));
  }

  static fetch(request: Request): Result<Response> {
    const doc = JSON.object().set("method", JSON.string(request.method)).set("url", JSON.string(request.url));
    const names = request.headers.keys();
    if (names.length > 0) {
      const headers = JSON.object();
      for (let i = 0; i < names.length; i++) headers.set(names[i], JSON.string(request.headers.get(names[i])));
      doc.set("headers", headers);
    }
    if (request.secret != "") doc.set("secret", JSON.string(request.secret));
    const d = Bytes.of(doc.toString()), b = new Bytes(request.body);
    const r = body(host.http_fetch(d.ptr, d.len, b.ptr, b.len));
    const meta = r.ok ? document(register(true)) : JSON.null();
    const headers = meta.get("headers");
    return new Result<Response>(r.errno, new Response(<i32>meta.numberOf("status"), headers ? headers : JSON.object(), r.or(EMPTY)));
  }

  // HMAC-SHA-256, keyed with the named secret, of the secret's fixed prefix and message.
  static hmac(name: string, message: ArrayBuffer): Result<ArrayBuffer> {
    const n = Bytes.of(name), m = new Bytes(message);
    return body(host.secret_hmac(n.ptr, n.len, m.ptr, m.len));
  }

  // Audit rows of the caller's own organisation; the query is {invocation, capability, after, limit}.
  static audit(query: JSON): Result<JSON> {
    const q = Bytes.of(query.toString());
    const r = body(host.audit_query(q.ptr, q.len));
    return new Result<JSON>(r.errno, document(r.or(EMPTY)));
  }
}
