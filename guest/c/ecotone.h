/*
 * ecotone.h: the Ecotone ABI for C, in one header.
 *
 * It needs <stddef.h> and <stdint.h>, which every compiler brings, and no C library; it works beside
 * wasi-libc as well. A biome is built freestanding like this:
 *
 *   clang --target=wasm32 -Os -ffreestanding -mbulk-memory -c -o biome.o biome.c
 *   wasm-ld --no-entry --strip-all -o biome.wasm biome.o
 *
 * The first part is the ABI: one function eco_NAME for each host function NAME. Each returns zero or
 * more, a length or a value, or a negated eco_errno. A refusal is a value: go on without, or fail.
 * Results of variable length wait in the result register; eco_result_read copies them out and
 * repeats nothing. The second part is a few helpers: reading results whole, failing, and as much JSON
 * as small biomes need. Everything of it is static, and what is not used is not in the module.
 *
 * Compiled for anything but WebAssembly the host functions are plain declarations, so that a test on
 * the author's machine can define them.
 *
 * Every invocation begins with the memory the module was initialised with: static buffers are
 * empty again, and nothing has to be freed.
 */
#ifndef ECOTONE_H
#define ECOTONE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a host call answers, negated, when it is refused or fails. */
enum eco_errno {
	ECO_EINVAL = 1,      /* an argument is not of the documented form */
	ECO_EFAULT = 2,      /* a pointer lies outside memory */
	ECO_EDENIED = 3,     /* refused by reach, grant, glob, flow or rule */
	ECO_ENOENT = 4,      /* absent, or above what this invocation may see */
	ECO_EEXIST = 5,      /* the destination is there already */
	ECO_EVERSION = 6,    /* changed since it was read */
	ECO_EREAD = 7,       /* read it first */
	ECO_ENOTEMPTY = 8,   /* the directory is not empty */
	ECO_ENOTREG = 9,     /* not a regular file */
	ECO_ENOMATCH = 10,   /* the text to replace does not occur */
	ECO_EAMBIGUOUS = 11, /* the text to replace occurs more than once */
	ECO_EEMPTY = 12,     /* the text to replace is empty */
	ECO_ESAME = 13,      /* old and new text are the same */
	ECO_EDELETED = 14,   /* deleted since it was read */
	ECO_ETOOBIG = 15,    /* one item is over its limit */
	ECO_EQUOTA = 16,     /* a budget is used up */
	ECO_EUNAVAIL = 17,   /* something needed is not ready */
	ECO_ETIMEOUT = 18,   /* took too long */
	ECO_ECANCELED = 19,  /* the invocation is cancelled or its authority withdrawn */
	ECO_EIO = 20,        /* the other side failed */
	ECO_ESECRET = 21,    /* the secret is absent or not for this use */
	ECO_ECONFLICT = 22,  /* the state assumed is not the state there is */
	ECO_ECHILD = 23,     /* the child invocation failed; its problem document is in the register */
	ECO_EINTERNAL = 24   /* the host failed */
};

/* How much a log record matters. */
enum eco_level { ECO_DEBUG, ECO_INFO, ECO_WARN, ECO_ERROR };

#ifdef __wasm__
#define ECO_HOST(name) __attribute__((import_module("ecotone_v1"), import_name(#name)))
/* A capability: ECO_EXPORT(greet) { ...; return 0; } */
#define ECO_EXPORT(name) __attribute__((export_name(#name))) int32_t name(void)
#else
#define ECO_HOST(name)
#define ECO_EXPORT(name) int32_t name(void)
#endif

/* A string literal as the pair of pointer and length that host functions take. */
#define ECO_LIT(literal) (literal), (sizeof(literal) - 1)

/* The invocation itself. */
ECO_HOST(input) int64_t eco_input(void);
ECO_HOST(result_read) int64_t eco_result_read(void *to, size_t off, size_t len);
ECO_HOST(result_meta) int64_t eco_result_meta(void *to, size_t off, size_t len);
ECO_HOST(output) int64_t eco_output(const void *data, size_t len);
ECO_HOST(error) int64_t eco_error(const char *code, size_t code_len, const char *message, size_t message_len);
ECO_HOST(log) int64_t eco_log(int32_t level, const char *message, size_t len);
ECO_HOST(time_now) int64_t eco_time_now(void);
ECO_HOST(random) int64_t eco_random(void *to, size_t len);

/* The biome's durable keys. */
ECO_HOST(kv_get) int64_t eco_kv_get(const char *key, size_t key_len);
ECO_HOST(kv_put) int64_t eco_kv_put(const char *key, size_t key_len, const void *value, size_t value_len);
ECO_HOST(kv_delete) int64_t eco_kv_delete(const char *key, size_t key_len);
ECO_HOST(kv_list) int64_t eco_kv_list(const char *prefix, size_t prefix_len, const char *after, size_t after_len, size_t limit);

/* The session's workspace. */
ECO_HOST(file_stat) int64_t eco_file_stat(const char *path, size_t path_len);
ECO_HOST(file_read) int64_t eco_file_read(const char *path, size_t path_len, int64_t off, size_t len);
ECO_HOST(file_list) int64_t eco_file_list(const char *path, size_t path_len, const char *after, size_t after_len, size_t limit);
ECO_HOST(file_create) int64_t eco_file_create(const char *path, size_t path_len, const void *data, size_t data_len);
ECO_HOST(file_write) int64_t eco_file_write(const char *path, size_t path_len, const void *data, size_t data_len);
ECO_HOST(file_replace) int64_t eco_file_replace(const char *path, size_t path_len, const char *version, size_t version_len, const void *data, size_t data_len);
ECO_HOST(file_edit) int64_t eco_file_edit(const char *path, size_t path_len, const char *old_text, size_t old_len, const char *new_text, size_t new_len, int32_t all);
ECO_HOST(file_copy) int64_t eco_file_copy(const char *from, size_t from_len, const char *to, size_t to_len);
ECO_HOST(file_move) int64_t eco_file_move(const char *from, size_t from_len, const char *to, size_t to_len);
ECO_HOST(file_remove) int64_t eco_file_remove(const char *path, size_t path_len);
ECO_HOST(file_mkdir) int64_t eco_file_mkdir(const char *path, size_t path_len);
ECO_HOST(file_grep) int64_t eco_file_grep(const char *pattern, size_t pattern_len, const char *glob, size_t glob_len, size_t limit);
ECO_HOST(file_glob) int64_t eco_file_glob(const char *glob, size_t glob_len, size_t limit);

/* What is outside the invocation. */
ECO_HOST(capability_invoke) int64_t eco_capability_invoke(const char *ref, size_t ref_len, const void *input, size_t input_len);
ECO_HOST(http_fetch) int64_t eco_http_fetch(const char *request, size_t request_len, const void *body, size_t body_len);
ECO_HOST(secret_hmac) int64_t eco_secret_hmac(const char *name, size_t name_len, const void *message, size_t message_len);
ECO_HOST(audit_query) int64_t eco_audit_query(const char *query, size_t query_len);

/* ---- helpers ---- */

/* eco_text is bytes somewhere else: not terminated, not owned. */
typedef struct {
	const char *at;
	size_t len;
} eco_text;

static inline size_t eco_strlen(const char *s)
{
	size_t n = 0;
	while (s[n])
		n++;
	return n;
}

/* eco_take copies the result register's body to a buffer and returns its length; what does not fit
 * is -ECO_ETOOBIG. Call it with what a host function returned: an error passes through. */
static inline int64_t eco_take(int64_t result, void *to, size_t room)
{
	size_t have = 0;
	char more;
	if (result < 0)
		return result;
	while (have < room) {
		int64_t n = eco_result_read((char *)to + have, have, room - have);
		if (n < 0)
			return n;
		if (n == 0)
			return (int64_t)have;
		have += (size_t)n;
	}
	return eco_result_read(&more, have, 1) == 0 ? (int64_t)have : -(int64_t)ECO_ETOOBIG;
}

/* eco_take_input reads the invocation's input whole. */
static inline int64_t eco_take_input(void *to, size_t room)
{
	return eco_take(eco_input(), to, room);
}

/* eco_errno_name is the name the documentation gives what a call returned, such as "ENOENT". */
static inline const char *eco_errno_name(int64_t result)
{
	static const char *const names[] = {
		"OK", "EINVAL", "EFAULT", "EDENIED", "ENOENT", "EEXIST", "EVERSION", "EREAD", "ENOTEMPTY",
		"ENOTREG", "ENOMATCH", "EAMBIGUOUS", "EEMPTY", "ESAME", "EDELETED", "ETOOBIG", "EQUOTA",
		"EUNAVAIL", "ETIMEOUT", "ECANCELED", "EIO", "ESECRET", "ECONFLICT", "ECHILD", "EINTERNAL"};
	if (result >= 0)
		return names[0];
	return -result < (int64_t)(sizeof names / sizeof *names) ? names[-result] : "FAILED";
}

/* eco_fail reports the capability's own failure. Return its result from the export. */
static inline int32_t eco_fail(const char *code, const char *message)
{
	eco_error(code, eco_strlen(code), message, eco_strlen(message));
	return 1;
}

/* eco_refused reports what a host call returned under the name of its error. */
static inline int32_t eco_refused(int64_t result, const char *doing)
{
	return eco_fail(eco_errno_name(result), doing);
}

static inline void eco_note(enum eco_level level, const char *message)
{
	eco_log((int32_t)level, message, eco_strlen(message));
}

/* eco_buf collects text in a fixed room. What does not fit is left out, and full says so. */
typedef struct {
	char *at;
	size_t len, room;
	int full;
} eco_buf;

static inline void eco_put(eco_buf *b, const char *data, size_t len)
{
	size_t i;
	if (len > b->room - b->len) {
		b->full = 1;
		return;
	}
	for (i = 0; i < len; i++)
		b->at[b->len + i] = data[i];
	b->len += len;
}

static inline void eco_puts(eco_buf *b, const char *text)
{
	eco_put(b, text, eco_strlen(text));
}

static inline void eco_put_int(eco_buf *b, int64_t n)
{
	char digits[20];
	size_t i = sizeof digits;
	uint64_t left = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
	do
		digits[--i] = (char)('0' + left % 10);
	while (left /= 10);
	if (n < 0)
		eco_put(b, "-", 1);
	eco_put(b, digits + i, sizeof digits - i);
}

/* eco_put_json adds a JSON string with the text as its content. The text must be UTF-8. */
static inline void eco_put_json(eco_buf *b, const char *text, size_t len)
{
	static const char hex[] = "0123456789abcdef";
	size_t i;
	eco_put(b, "\"", 1);
	for (i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];
		if (c == '"' || c == '\\') {
			char two[2] = {'\\', (char)c};
			eco_put(b, two, 2);
		} else if (c < 0x20) {
			char six[6] = {'\\', 'u', '0', '0', 0, 0};
			six[4] = hex[c >> 4];
			six[5] = hex[c & 15];
			eco_put(b, six, 6);
		} else {
			eco_put(b, text + i, 1);
		}
	}
	eco_put(b, "\"", 1);
}

/* eco_send makes the buffer the invocation's output, and is the result of the export. */
static inline int32_t eco_send(const eco_buf *b)
{
	int64_t r;
	if (b->full)
		return eco_fail("OUTPUT_TOO_LARGE", "the answer is larger than the room for it");
	r = eco_output(b->at, b->len);
	return r < 0 ? eco_refused(r, "the output was refused") : 0;
}

/*
 * JSON, for reading the input. The host has checked the input against the capability's schema before
 * the guest sees it; these stay inside the text whatever it holds.
 */

static inline size_t eco_json_space(eco_text t, size_t i)
{
	while (i < t.len && (t.at[i] == ' ' || t.at[i] == '\t' || t.at[i] == '\n' || t.at[i] == '\r'))
		i++;
	return i;
}

/* eco_json_end is the index after the value that begins at or after i. */
static inline size_t eco_json_end(eco_text t, size_t i)
{
	size_t depth = 0;
	i = eco_json_space(t, i);
	while (i < t.len) {
		char c = t.at[i];
		if (c == '"') {
			for (i++; i < t.len && t.at[i] != '"'; i++)
				if (t.at[i] == '\\')
					i++;
		} else if (c == '{' || c == '[') {
			depth++;
		} else if (c == '}' || c == ']') {
			if (depth == 0)
				return i;
			depth--;
		} else if (depth == 0) { /* a number or a word */
			while (i < t.len && t.at[i] != ',' && t.at[i] != '}' && t.at[i] != ']' && t.at[i] != ':' && eco_json_space(t, i) == i)
				i++;
			return i;
		}
		i++;
		if (depth == 0)
			break;
	}
	return i < t.len ? i : t.len;
}

/* eco_json_next steps through an object's or array's elements: give it 0 first, then what it
 * returned; 0 is the end. In an object key is the raw key with its quotes, in an array empty. */
static inline size_t eco_json_next(eco_text t, size_t i, eco_text *key, eco_text *value)
{
	size_t end, start;
	if (i == 0) {
		i = eco_json_space(t, 0);
		if (i >= t.len || (t.at[i] != '{' && t.at[i] != '['))
			return 0;
	}
	start = eco_json_space(t, i + 1); /* i is at an opening bracket or a comma */
	if (start >= t.len || t.at[start] == '}' || t.at[start] == ']')
		return 0;
	end = eco_json_end(t, start);
	key->at = t.at + start;
	key->len = 0;
	i = eco_json_space(t, end);
	if (i < t.len && t.at[i] == ':') {
		key->len = end - start;
		start = eco_json_space(t, i + 1);
		end = eco_json_end(t, start);
	}
	if (end <= start)
		return 0;
	value->at = t.at + start;
	value->len = end - start;
	end = eco_json_space(t, end);
	return end < t.len ? end : 0;
}

/* eco_json_member finds an object's member by a name without escapes; 0 when there is none. */
static inline int eco_json_member(eco_text object, const char *name, eco_text *value)
{
	size_t i = 0, n = eco_strlen(name), k;
	eco_text key;
	while ((i = eco_json_next(object, i, &key, value))) {
		if (key.len != n + 2)
			continue;
		for (k = 0; k < n && key.at[k + 1] == name[k]; k++)
			;
		if (k == n)
			return 1;
	}
	return 0;
}

static inline int eco_json_hex(eco_text t, size_t i, uint32_t *code)
{
	size_t end = i + 4;
	*code = 0;
	if (end > t.len)
		return 0;
	for (; i < end; i++) {
		char c = t.at[i];
		uint32_t digit = c >= '0' && c <= '9' ? (uint32_t)(c - '0') : ((c | 32) >= 'a' && (c | 32) <= 'f') ? (uint32_t)((c | 32) - 'a' + 10) : 16;
		if (digit > 15)
			return 0;
		*code = *code << 4 | digit;
	}
	return 1;
}

/* eco_json_text decodes a JSON string to UTF-8 and returns its length, -ECO_EINVAL when it is no
 * string, -ECO_ETOOBIG when there is no room. A lone surrogate becomes U+FFFD. */
static inline int64_t eco_json_text(eco_text raw, char *to, size_t room)
{
	eco_buf b = {to, 0, room, 0};
	size_t i = 1;
	if (raw.len < 2 || raw.at[0] != '"' || raw.at[raw.len - 1] != '"')
		return -(int64_t)ECO_EINVAL;
	raw.len--;
	while (i < raw.len) {
		char c = raw.at[i++], utf8[4];
		uint32_t code, low;
		if (c != '\\') {
			eco_put(&b, &c, 1);
			continue;
		}
		if (i >= raw.len)
			return -(int64_t)ECO_EINVAL;
		c = raw.at[i++];
		switch (c) {
		case 'b': c = '\b'; break;
		case 'f': c = '\f'; break;
		case 'n': c = '\n'; break;
		case 'r': c = '\r'; break;
		case 't': c = '\t'; break;
		case 'u':
			if (!eco_json_hex(raw, i, &code))
				return -(int64_t)ECO_EINVAL;
			i += 4;
			if (code >= 0xd800 && code < 0xe000) {
				if (code < 0xdc00 && i + 1 < raw.len && raw.at[i] == '\\' && raw.at[i + 1] == 'u' &&
				    eco_json_hex(raw, i + 2, &low) && low >= 0xdc00 && low < 0xe000) {
					code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
					i += 6;
				} else {
					code = 0xfffd;
				}
			}
			if (code < 0x80) {
				utf8[0] = (char)code;
				eco_put(&b, utf8, 1);
			} else if (code < 0x800) {
				utf8[0] = (char)(0xc0 | code >> 6);
				utf8[1] = (char)(0x80 | (code & 63));
				eco_put(&b, utf8, 2);
			} else if (code < 0x10000) {
				utf8[0] = (char)(0xe0 | code >> 12);
				utf8[1] = (char)(0x80 | (code >> 6 & 63));
				utf8[2] = (char)(0x80 | (code & 63));
				eco_put(&b, utf8, 3);
			} else {
				utf8[0] = (char)(0xf0 | code >> 18);
				utf8[1] = (char)(0x80 | (code >> 12 & 63));
				utf8[2] = (char)(0x80 | (code >> 6 & 63));
				utf8[3] = (char)(0x80 | (code & 63));
				eco_put(&b, utf8, 4);
			}
			continue;
		}
		eco_put(&b, &c, 1);
	}
	return b.full ? -(int64_t)ECO_ETOOBIG : (int64_t)b.len;
}

/* eco_json_int reads a whole number; 0 when it is none that fits. */
static inline int eco_json_int(eco_text raw, int64_t *n)
{
	size_t i = 0;
	int negative = raw.len > 0 && raw.at[0] == '-';
	uint64_t value = 0, most = (uint64_t)INT64_MAX + (uint64_t)negative;
	for (i = (size_t)negative; i < raw.len; i++) {
		uint64_t digit = (uint64_t)(unsigned char)raw.at[i] - '0';
		if (digit > 9 || value > (most - digit) / 10)
			return 0;
		value = value * 10 + digit;
	}
	*n = (int64_t)(negative ? 0 - value : value);
	return raw.len > (size_t)negative;
}

#ifdef __cplusplus
}
#endif

#endif
