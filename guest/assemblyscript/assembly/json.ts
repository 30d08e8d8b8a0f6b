// As much JSON as a biome needs: a value, a parser and a writer.

export const enum Kind {
  Null,
  Bool,
  Number,
  String,
  Array,
  Object,
}

// Values nested deeper than this are refused.
const DEPTH: i32 = 64;

export class JSON {
  private flag: bool = false;
  private num: f64 = 0;
  private str: string = "";
  private list: JSON[] = [];
  private names: string[] = [];

  private constructor(readonly kind: Kind) {}

  static null(): JSON {
    return new JSON(Kind.Null);
  }

  static bool(b: bool): JSON {
    const v = new JSON(Kind.Bool);
    v.flag = b;
    return v;
  }

  static number(n: f64): JSON {
    const v = new JSON(Kind.Number);
    v.num = n;
    return v;
  }

  static string(s: string): JSON {
    const v = new JSON(Kind.String);
    v.str = s;
    return v;
  }

  static array(): JSON {
    return new JSON(Kind.Array);
  }

  static object(): JSON {
    return new JSON(Kind.Object);
  }

  // Reads one JSON value; null when the text is anything else.
  static parse(text: string): JSON | null {
    const p = new Parser(text);
    const v = p.value(0);
    p.space();
    return p.failed || p.at < text.length ? null : v;
  }

  // Adds an element to an array.
  push(v: JSON): this {
    this.list.push(v);
    return this;
  }

  // Adds a member to an object.
  set(name: string, v: JSON): this {
    this.names.push(name);
    this.list.push(v);
    return this;
  }

  get length(): i32 {
    return this.list.length;
  }

  at(i: i32): JSON {
    return this.list[i];
  }

  nameAt(i: i32): string {
    return this.names[i];
  }

  // A member of an object; null when there is none.
  get(name: string): JSON | null {
    for (let i = 0; i < this.names.length; i++) {
      if (this.names[i] == name) return this.list[i];
    }
    return null;
  }

  // The string it is, or the other.
  text(other: string = ""): string {
    return this.kind == Kind.String ? this.str : other;
  }

  number(other: f64 = 0): f64 {
    return this.kind == Kind.Number ? this.num : other;
  }

  truth(other: bool = false): bool {
    return this.kind == Kind.Bool ? this.flag : other;
  }

  // A member's string, or the other.
  textOf(name: string, other: string = ""): string {
    const v = this.get(name);
    return v ? v.text(other) : other;
  }

  numberOf(name: string, other: f64 = 0): f64 {
    const v = this.get(name);
    return v ? v.number(other) : other;
  }

  truthOf(name: string, other: bool = false): bool {
    const v = this.get(name);
    return v ? v.truth(other) : other;
  }

  toString(): string {
    const parts: string[] = [];
    this.write(parts);
    return parts.join("");
  }

  private write(to: string[]): void {
    switch (this.kind) {
      case Kind.Null:
        to.push("null");
        break;
      case Kind.Bool:
        to.push(this.flag ? "true" : "false");
        break;
      case Kind.Number: {
        const n = this.num;
        const whole = n == Math.floor(n) && Math.abs(n) < 9007199254740992.0;
        to.push(whole ? (<i64>n).toString() : isFinite(n) ? n.toString() : "null");
        break;
      }
      case Kind.String:
        to.push(quote(this.str));
        break;
      case Kind.Array:
        to.push("[");
        for (let i = 0; i < this.list.length; i++) {
          if (i > 0) to.push(",");
          this.list[i].write(to);
        }
        to.push("]");
        break;
      default:
        to.push("{");
        for (let i = 0; i < this.list.length; i++) {
          if (i > 0) to.push(",");
          to.push(quote(this.names[i]));
          to.push(":");
          this.list[i].write(to);
        }
        to.push("}");
    }
  }
}

// A JSON string with the text as its content.
export function quote(text: string): string {
  const parts: string[] = ['"'];
  let plain = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c >= 0x20 && c != 0x22 && c != 0x5c) continue;
    parts.push(text.substring(plain, i));
    plain = i + 1;
    parts.push(c >= 0x20 ? "\\" + text.charAt(i) : "\\u" + c.toString(16).padStart(4, "0"));
  }
  parts.push(text.substring(plain));
  parts.push('"');
  return parts.join("");
}

class Parser {
  at: i32 = 0;
  failed: bool = false;

  constructor(private readonly text: string) {}

  private peek(): i32 {
    return this.at < this.text.length ? this.text.charCodeAt(this.at) : -1;
  }

  private fail(): JSON {
    this.failed = true;
    return JSON.null();
  }

  space(): void {
    for (let c = this.peek(); c == 0x20 || c == 0x09 || c == 0x0a || c == 0x0d; c = this.peek()) this.at++;
  }

  private eat(c: i32): bool {
    this.space();
    if (this.peek() != c) return false;
    this.at++;
    return true;
  }

  private word(word: string, v: JSON): JSON {
    if (!this.text.substring(this.at).startsWith(word)) return this.fail();
    this.at += word.length;
    return v;
  }

  value(depth: i32): JSON {
    if (depth > DEPTH) return this.fail();
    this.space();
    switch (this.peek()) {
      case 0x6e:
        return this.word("null", JSON.null());
      case 0x74:
        return this.word("true", JSON.bool(true));
      case 0x66:
        return this.word("false", JSON.bool(false));
      case 0x22:
        return JSON.string(this.string());
      case 0x5b:
        return this.array(depth);
      case 0x7b:
        return this.object(depth);
    }
    return this.number();
  }

  private array(depth: i32): JSON {
    const v = JSON.array();
    this.at++;
    if (this.eat(0x5d)) return v;
    while (!this.failed) {
      v.push(this.value(depth + 1));
      if (this.eat(0x5d)) return v;
      if (!this.eat(0x2c)) return this.fail();
    }
    return v;
  }

  private object(depth: i32): JSON {
    const v = JSON.object();
    this.at++;
    if (this.eat(0x7d)) return v;
    while (!this.failed) {
      this.space();
      if (this.peek() != 0x22) return this.fail();
      const name = this.string();
      if (!this.eat(0x3a)) return this.fail();
      v.set(name, this.value(depth + 1));
      if (this.eat(0x7d)) return v;
      if (!this.eat(0x2c)) return this.fail();
    }
    return v;
  }

  private number(): JSON {
    const start = this.at;
    for (let c = this.peek(); (c >= 0x30 && c <= 0x39) || c == 0x2d || c == 0x2b || c == 0x2e || (c | 0x20) == 0x65; c = this.peek()) this.at++;
    if (start == this.at) return this.fail();
    const n = parseFloat(this.text.substring(start, this.at));
    return isNaN(n) ? this.fail() : JSON.number(n);
  }

  private string(): string {
    const parts: string[] = [];
    let plain = ++this.at;
    while (true) {
      const c = this.peek();
      if (c < 0x20) {
        this.fail();
        return "";
      }
      if (c == 0x22) {
        parts.push(this.text.substring(plain, this.at++));
        return parts.join("");
      }
      this.at++;
      if (c != 0x5c) continue;
      parts.push(this.text.substring(plain, this.at - 1));
      parts.push(this.escape());
      plain = this.at;
    }
  }

  private escape(): string {
    const c = this.peek();
    this.at++;
    switch (c) {
      case 0x22:
      case 0x5c:
      case 0x2f:
        return String.fromCharCode(c);
      case 0x62:
        return "\b";
      case 0x66:
        return "\f";
      case 0x6e:
        return "\n";
      case 0x72:
        return "\r";
      case 0x74:
        return "\t";
      case 0x75: {
        let code = 0;
        for (let end = this.at + 4; this.at < end; this.at++) {
          const d = this.peek();
          const digit = d >= 0x30 && d <= 0x39 ? d - 0x30 : (d | 0x20) >= 0x61 && (d | 0x20) <= 0x66 ? (d | 0x20) - 0x57 : -1;
          if (digit < 0) {
            this.fail();
            return "";
          }
          code = (code << 4) | digit;
        }
        return String.fromCharCode(code);
      }
    }
    this.fail();
    return "";
  }
}
