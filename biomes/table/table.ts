// table: CSV to records and back (RFC 4180). In AssemblyScript; the text comes with the input or from a
// file of the workspace.

import { Biome, Errno, Files, JSON, Kind } from "../../guest/assemblyscript/assembly";

// The records of a CSV text, and why it is none.
class Reader {
  private at: i32 = 0;
  fault: string = "";

  constructor(
    private readonly text: string,
    private readonly delimiter: i32,
  ) {}

  get done(): bool {
    return this.at >= this.text.length || this.fault != "";
  }

  record(): string[] {
    const fields: string[] = [];
    while (true) {
      fields.push(this.field());
      if (this.at >= this.text.length || this.fault != "") return fields;
      const c = this.text.charCodeAt(this.at++);
      if (c == this.delimiter) continue;
      if (c == 0x0d && this.at < this.text.length && this.text.charCodeAt(this.at) == 0x0a) this.at++;
      return fields;
    }
  }

  private ends(c: i32): bool {
    return c == this.delimiter || c == 0x0a || c == 0x0d;
  }

  private field(): string {
    const start = this.at;
    if (start < this.text.length && this.text.charCodeAt(start) == 0x22) return this.quoted();
    while (this.at < this.text.length && !this.ends(this.text.charCodeAt(this.at))) this.at++;
    return this.text.substring(start, this.at);
  }

  private quoted(): string {
    const start = this.at;
    let out = "";
    let from = ++this.at;
    while (this.at < this.text.length) {
      if (this.text.charCodeAt(this.at++) != 0x22) continue;
      out += this.text.substring(from, this.at - 1);
      if (this.at >= this.text.length || this.text.charCodeAt(this.at) != 0x22) {
        if (this.at < this.text.length && !this.ends(this.text.charCodeAt(this.at))) this.fault = "there is more after the quote that ends at " + this.at.toString();
        return out;
      }
      from = this.at++; // two quotes are one
    }
    this.fault = "the quote at " + start.toString() + " has no end";
    return "";
  }
}

function delimiterOf(input: JSON): i32 {
  return input.textOf("delimiter", ",").charCodeAt(0);
}

// A field that is a number as JSON writes it is a number; every other is a text.
function cell(field: string, typed: bool): JSON {
  if (!typed || field == "") return JSON.string(field);
  const v = JSON.parse(field);
  return v && v.kind == Kind.Number && v.toString() == field ? v : JSON.string(field);
}

export function parse(): i32 {
  const input = Biome.input();
  let text = input.textOf("csv");
  const path = input.textOf("path");
  if (path != "") {
    const r = Files.text(path);
    if (r.errno == Errno.ENOENT) return Biome.fail("FILE_NOT_FOUND", "there is no " + path);
    if (!r.ok) return Biome.refused(r.errno, "the file cannot be read");
    text = r.value;
  }
  const reader = new Reader(text, delimiterOf(input));
  const typed = input.truthOf("numbers");
  const columns = JSON.array(), rows = JSON.array();
  const names = reader.done ? new Array<string>() : reader.record();
  for (let i = 0; i < names.length; i++) columns.push(JSON.string(names[i]));
  while (!reader.done) {
    const fields = reader.record();
    if (fields.length == 1 && fields[0] == "") continue; // an empty line
    if (reader.fault == "" && fields.length != names.length) {
      return Biome.fail("CSV_INVALID", "record " + (rows.length + 1).toString() + " has " + fields.length.toString() + " fields, the header " + names.length.toString());
    }
    const row = JSON.object();
    for (let i = 0; i < fields.length && i < names.length; i++) row.set(names[i], cell(fields[i], typed));
    rows.push(row);
  }
  if (reader.fault != "") return Biome.fail("CSV_INVALID", reader.fault);
  return Biome.output(JSON.object().set("columns", columns).set("rows", rows));
}

function escape(field: string, delimiter: string): string {
  const plain = !field.includes('"') && !field.includes("\n") && !field.includes("\r") && !field.includes(delimiter);
  return plain ? field : '"' + field.replaceAll('"', '""') + '"';
}

export function render(): i32 {
  const input = Biome.input();
  const delimiter = String.fromCharCode(delimiterOf(input));
  const columns = input.get("columns"), rows = input.get("rows");
  if (!columns || !rows) return Biome.fail("INPUT_INVALID", "columns and rows are missing");
  const lines: string[] = [];
  const fields: string[] = [];
  for (let i = 0; i < columns.length; i++) fields.push(escape(columns.at(i).text(), delimiter));
  lines.push(fields.join(delimiter));
  for (let i = 0; i < rows.length; i++) {
    for (let j = 0; j < columns.length; j++) {
      const v = rows.at(i).get(columns.at(j).text());
      fields[j] = !v || v.kind == Kind.Null ? "" : escape(v.kind == Kind.String ? v.text() : v.toString(), delimiter);
    }
    lines.push(fields.join(delimiter));
  }
  return Biome.output(JSON.object().set("csv", JSON.string(lines.join("\r\n") + "\r\n")));
}
