// SPDX-License-Identifier: LGPL-2.1-or-later
/* Replaces the marks in the page's frame by the page's parts. The content security policy allows
 * exactly the one script and the one style in the page, by their hashes, and loads nothing. */
#include <string.h>

#include "client/perfctl/pictures/html-page.h"
#include "page-hashes.h" /* generated: see the Makefile */

#define EMBED(name, file)                                                                        \
	extern const char name[] __attribute__((visibility("hidden")));                          \
	__asm__(".pushsection .rodata\n" #name ":\n.incbin \"" PAGE_DIR "/" file "\"\n.byte 0\n" \
		".popsection\n")

EMBED(page_html, "page.html");
EMBED(page_css, "page.css");
EMBED(page_js, "page.js");

static const char data_mark[] = "<!--DATA-->";

static const char policy[] =
	"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	"style-src 'sha256-" PAGE_CSS_HASH "'; script-src 'sha256-" PAGE_JS_HASH "'; "
	"base-uri 'none'; form-action 'none'\">";

static const struct {
	const char *mark, *before, *text, *after;
} parts[] = {
	{ "<!--POLICY-->", "", policy, "" },
	{ "<!--STYLE-->", "<style>", page_css, "</style>" },
	{ "<!--SCRIPT-->", "<script>", page_js, "</script>" },
};

/* Writes a part of the frame, and replaces its marks. */
static void write_frame(FILE *f, const char *p, const char *end)
{
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		const char *mark = strstr(p, parts[i].mark);

		if (!mark || mark >= end)
			continue;
		fwrite(p, 1, (size_t)(mark - p), f);
		fprintf(f, "%s%s%s", parts[i].before, parts[i].text, parts[i].after);
		p = mark + strlen(parts[i].mark);
	}
	fwrite(p, 1, (size_t)(end - p), f);
}

void page_begin(FILE *f)
{
	write_frame(f, page_html, strstr(page_html, data_mark));
}

void page_end(FILE *f)
{
	write_frame(f, strstr(page_html, data_mark) + strlen(data_mark),
		    page_html + strlen(page_html));
}
