/*
 * textstats: what can be said of a text without understanding it, and a slug made of one. In C,
 * without a C library: the whole module has a few kilobytes and asks the host for nothing but its
 * input.
 */
#include "ecotone.h"

#define ROOM (1u << 20) /* the host's limit on the input */

static char input[ROOM], text[ROOM];

/* take reads the input and decodes its member "text"; negative is an error of eco_errno. */
static int64_t take(eco_text *doc)
{
	eco_text raw;
	int64_t n = eco_take_input(input, sizeof input);
	if (n < 0)
		return n;
	doc->at = input;
	doc->len = (size_t)n;
	if (!eco_json_member(*doc, "text", &raw))
		return -(int64_t)ECO_EINVAL;
	return eco_json_text(raw, text, sizeof text);
}

static int space(unsigned char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* Counts bytes, characters (code points), words (runs of anything but spaces), lines, and the
 * characters of the longest word. */
ECO_EXPORT(count)
{
	static char room[256];
	eco_buf out = {room, 0, sizeof room, 0};
	eco_text doc;
	int64_t i, n = take(&doc), characters = 0, words = 0, lines = 0, longest = 0, word = 0;
	if (n < 0)
		return eco_refused(n, "the text cannot be read");
	for (i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];
		int begins = (c & 0xc0) != 0x80; /* a character, and not the rest of one */
		characters += begins;
		lines += c == '\n';
		if (space(c)) {
			word = 0;
			continue;
		}
		words += begins && word == 0;
		word += begins;
		if (word > longest)
			longest = word;
	}
	lines += n > 0 && text[n - 1] != '\n';
	eco_puts(&out, "{\"bytes\":");
	eco_put_int(&out, n);
	eco_puts(&out, ",\"characters\":");
	eco_put_int(&out, characters);
	eco_puts(&out, ",\"words\":");
	eco_put_int(&out, words);
	eco_puts(&out, ",\"lines\":");
	eco_put_int(&out, lines);
	eco_puts(&out, ",\"longestWord\":");
	eco_put_int(&out, longest);
	eco_puts(&out, "}");
	return eco_send(&out);
}

/* The letter nearest to each character of U+00C0 to U+00FF, in lower case; a space for none. */
static const char latin[64] = "aaaaaaaceeeeiiiidnooooo ouuuuyts"
                              "aaaaaaaceeeeiiiidnooooo ouuuuyty";

/* Makes a slug: lower case, letters and digits, one hyphen for everything between them. */
ECO_EXPORT(slug)
{
	static char made[129], room[256];
	eco_buf out = {room, 0, sizeof room, 0};
	eco_text doc, raw;
	int64_t i, n = take(&doc), most = 64;
	size_t len = 0;
	int gap = 0;
	if (n < 0)
		return eco_refused(n, "the text cannot be read");
	if (eco_json_member(doc, "most", &raw) && (!eco_json_int(raw, &most) || most < 1 || most > 128))
		return eco_fail("MOST_INVALID", "most is 1 to 128");
	for (i = 0; i < n && len < (size_t)most; i++) {
		unsigned char c = (unsigned char)text[i];
		if (c == 0xc3 && i + 1 < n)
			c = (unsigned char)latin[(unsigned char)text[++i] & 63];
		if (c >= 'A' && c <= 'Z')
			c |= 32;
		if ((c < 'a' || c > 'z') && (c < '0' || c > '9')) {
			gap = len > 0;
			continue;
		}
		if (gap && len + 1 < (size_t)most)
			made[len++] = '-';
		else if (gap)
			break;
		gap = 0;
		made[len++] = (char)c;
	}
	if (len == 0)
		return eco_fail("NOTHING_LEFT", "no letter and no digit is in the text");
	eco_puts(&out, "{\"slug\":");
	eco_put_json(&out, made, len);
	eco_puts(&out, "}");
	return eco_send(&out);
}
