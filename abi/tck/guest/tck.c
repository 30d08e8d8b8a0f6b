/*
 * The guest of the conformance kit: it makes the host calls its input tells it to make and reports
 * what they gave. The input is a JSON string without escapes: steps with ; between them, each the
 * name of a host function and its arguments with spaces between them:
 *
 *   xHEX       these bytes, as a pointer and a length
 *   rN:HEX     N times these bytes
 *   nNUMBER    a number
 *   v          the version in the document that described the result before
 *   bN         a buffer of the guest's own, of N bytes (for functions that write to memory)
 *   pPTR:LEN   a pointer and a length as they are, wherever they point
 *
 * The output is a list with [value, body, meta] for each step, the last two in hexadecimal: for a
 * function that fills a buffer what is in it, for any other what the result register holds then.
 * With ! at the beginning nothing is reported, so that the calls of the script have the last word.
 */
#include "ecotone.h"

#define INPUT_ROOM (128u << 10)
#define ARENA_ROOM (64u << 10)
#define BUFFER_ROOM (256u << 10)
#define BODY_ROOM 4096u
#define META_ROOM 1024u
#define MOST 4

typedef struct {
	const char *at; /* bytes, or a buffer */
	size_t len;
	int64_t n;
} argument;

static char input[INPUT_ROOM], arena[ARENA_ROOM], buffer[BUFFER_ROOM], report_room[256u << 10], body[BODY_ROOM], meta[META_ROOM];
static size_t used, meta_len;

static size_t until(eco_text t, size_t i, char end)
{
	while (i < t.len && t.at[i] != end)
		i++;
	return i;
}

static eco_text cut(eco_text t, size_t from, size_t to)
{
	eco_text part = {t.at + from, to - from};
	return part;
}

static int is(eco_text t, const char *name)
{
	size_t i, n = eco_strlen(name);
	if (t.len != n)
		return 0;
	for (i = 0; i < n; i++)
		if (t.at[i] != name[i])
			return 0;
	return 1;
}

static int64_t number(eco_text t)
{
	int64_t n = 0;
	size_t i = t.len > 0 && t.at[0] == '-';
	for (; i < t.len; i++)
		n = (int64_t)((uint64_t)n * 10 + (uint64_t)(t.at[i] - '0'));
	return t.len > 0 && t.at[0] == '-' ? -n : n;
}

static unsigned digit(char c) { return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'a' + 10); }

/* bytes puts what the digits say into the arena, times over. */
static argument bytes(eco_text digits, int64_t times)
{
	argument a = {arena + used, 0, 0};
	size_t i;
	for (; times > 0; times--)
		for (i = 0; i + 1 < digits.len; i += 2) {
			if (used == ARENA_ROOM)
				__builtin_trap();
			arena[used++] = (char)(digit(digits.at[i]) << 4 | digit(digits.at[i + 1]));
			a.len++;
		}
	return a;
}

static argument parse(eco_text word)
{
	argument a = {buffer, 0, 0};
	eco_text rest = cut(word, 1, word.len);
	size_t colon = until(rest, 0, ':');
	switch (word.at[0]) {
	case 'x': return bytes(rest, 1);
	case 'r': return bytes(cut(rest, colon + 1, rest.len), number(cut(rest, 0, colon)));
	case 'v':
		if (eco_json_member((eco_text){meta, meta_len}, "version", &rest)) {
			a.at = rest.at + 1;
			a.len = rest.len - 2;
		}
		return a;
	case 'n': a.n = number(rest); return a;
	case 'b': a.len = (size_t)number(rest); return a;
	case 'p':
		a.at = (const char *)(uintptr_t)(uint32_t)number(cut(rest, 0, colon));
		a.len = (size_t)(uint32_t)number(cut(rest, colon + 1, rest.len));
		return a;
	}
	__builtin_trap();
}

static int fills(eco_text f) { return is(f, "result_read") || is(f, "result_meta") || is(f, "random"); }

#define B(i) a[i].at, a[i].len
#define N(i) a[i].n

static int64_t call(eco_text f, const argument *a)
{
	if (is(f, "input")) return eco_input();
	if (is(f, "result_read")) return eco_result_read((void *)a[0].at, (size_t)N(1), a[0].len);
	if (is(f, "result_meta")) return eco_result_meta((void *)a[0].at, (size_t)N(1), a[0].len);
	if (is(f, "output")) return eco_output(B(0));
	if (is(f, "error")) return eco_error(B(0), B(1));
	if (is(f, "log")) return eco_log((int32_t)N(0), B(1));
	if (is(f, "time_now")) return eco_time_now();
	if (is(f, "random")) return eco_random((void *)a[0].at, a[0].len);
	if (is(f, "kv_get")) return eco_kv_get(B(0));
	if (is(f, "kv_put")) return eco_kv_put(B(0), B(1));
	if (is(f, "kv_delete")) return eco_kv_delete(B(0));
	if (is(f, "kv_list")) return eco_kv_list(B(0), B(1), (size_t)N(2));
	if (is(f, "file_stat")) return eco_file_stat(B(0));
	if (is(f, "file_read")) return eco_file_read(B(0), N(1), (size_t)N(2));
	if (is(f, "file_list")) return eco_file_list(B(0), B(1), (size_t)N(2));
	if (is(f, "file_create")) return eco_file_create(B(0), B(1));
	if (is(f, "file_write")) return eco_file_write(B(0), B(1));
	if (is(f, "file_replace")) return eco_file_replace(B(0), B(1), B(2));
	if (is(f, "file_edit")) return eco_file_edit(B(0), B(1), B(2), (int32_t)N(3));
	if (is(f, "file_copy")) return eco_file_copy(B(0), B(1));
	if (is(f, "file_move")) return eco_file_move(B(0), B(1));
	if (is(f, "file_remove")) return eco_file_remove(B(0));
	if (is(f, "file_mkdir")) return eco_file_mkdir(B(0));
	if (is(f, "file_grep")) return eco_file_grep(B(0), B(1), (size_t)N(2));
	if (is(f, "file_glob")) return eco_file_glob(B(0), (size_t)N(1));
	if (is(f, "capability_invoke")) return eco_capability_invoke(B(0), B(1));
	if (is(f, "http_fetch")) return eco_http_fetch(B(0), B(1));
	if (is(f, "secret_hmac")) return eco_secret_hmac(B(0), B(1));
	if (is(f, "audit_query")) return eco_audit_query(B(0));
	__builtin_trap();
}

static void put_hex(eco_buf *b, const char *data, int64_t len)
{
	int64_t i;
	eco_put(b, "\"", 1);
	for (i = 0; i < len; i++) {
		char two[2] = {"0123456789abcdef"[(unsigned char)data[i] >> 4], "0123456789abcdef"[data[i] & 15]};
		eco_put(b, two, 2);
	}
	eco_put(b, "\"", 1);
}

/* step makes one call and reports it. */
static void step(eco_text line, eco_buf *report, int silent)
{
	argument a[MOST] = {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}};
	size_t at = until(line, 0, ' '), n = 0, end;
	eco_text f = cut(line, 0, at);
	int64_t result, n_meta;
	used = 0;
	for (; at < line.len && n < MOST; at = end, n++) {
		end = until(line, at + 1, ' ');
		a[n] = parse(cut(line, at + 1, end));
	}
	result = call(f, a);
	if (silent)
		return;
	if (report->len > 1)
		eco_put(report, ",", 1);
	eco_put(report, "[", 1);
	eco_put_int(report, result);
	eco_put(report, ",", 1);
	if (fills(f)) {
		put_hex(report, buffer, a[0].at == buffer && result < (int64_t)BODY_ROOM ? result : 0);
		eco_puts(report, ",\"\"]");
		return;
	}
	put_hex(report, body, eco_result_read(body, 0, BODY_ROOM));
	eco_put(report, ",", 1);
	n_meta = eco_result_meta(meta, 0, META_ROOM);
	meta_len = n_meta < 0 ? 0 : (size_t)n_meta;
	put_hex(report, meta, n_meta);
	eco_put(report, "]", 1);
}

static int32_t run(void)
{
	eco_buf report = {report_room, 0, sizeof report_room, 0};
	int64_t n = eco_take_input(input, sizeof input);
	eco_text script;
	size_t i, end;
	int silent;
	if (n < 2)
		return eco_refused(n, "the script cannot be read");
	script = cut((eco_text){input, (size_t)n}, 1, (size_t)n - 1);
	silent = script.len > 0 && script.at[0] == '!';
	eco_put(&report, "[", 1);
	for (i = (size_t)silent; i < script.len; i = end + 1) {
		end = until(script, i, ';');
		step(cut(script, i, end), &report, silent);
	}
	eco_put(&report, "]", 1);
	return silent ? 0 : eco_send(&report);
}

ECO_EXPORT(call_run) { return run(); }
ECO_EXPORT(call_child) { return run(); }
