// SPDX-License-Identifier: LGPL-2.1-or-later
/* The shown part of a demangled name: as in perf, without parameters and return type. */
#include "client/perfctl/trace/demangle.h"

#include <ctype.h>
#include <string.h>

#include "proto/macro.h"

/* The length of the operator behind the word `operator` in s; 0: it is a conversion to a type. */
static size_t operator_length(const char *s)
{
	static const char *const with_brackets[] = { "()", "[]", "<<=", ">>=", "<=>", "->*", "<<",
						     ">>", "<=", ">=",	"->",  "<",   ">" };

	for (size_t i = 0; i < ARRAY_SIZE(with_brackets); i++)
		if (!strncmp(s, with_brackets[i], strlen(with_brackets[i])))
			return strlen(with_brackets[i]);
	return strcspn(s, " (<abcdefghijklmnopqrstuvwxyz_ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
}

static bool is_operator(const char *text, const char *at)
{
	static const char word[] = "operator";
	const size_t len = sizeof(word) - 1;

	return !strncmp(at, word, len) && (at == text || at[-1] == ':' || at[-1] == ' ') &&
	       !isalnum((unsigned char)at[len]) && at[len] != '_';
}

/* Text that may follow parameters; any other text there shows that they belonged to a
 * decltype(). */
static bool is_suffix(const char *text)
{
	return *text == '&' || *text == '[' || !strncmp(text, "const", 5) ||
	       !strncmp(text, "volatile", 8);
}

/* "virtual thunk to ", "guard variable for ": not a return type. */
static bool is_prefix(const char *text, const char *end)
{
	return (end - text > 4 && !strncmp(end - 4, " to ", 4)) ||
	       (end - text > 5 && !strncmp(end - 5, " for ", 5));
}

/* Shortens "int ns::f<int>(long) const" to "ns::f<int>": the name begins behind the last blank
 * outside of all brackets, and ends before the last bracketed part that follows it. */
static char *name_alone(char *text)
{
	char *begin = text, *parameters = NULL;
	unsigned depth = 0;

	for (char *c = text; *c;) {
		if (is_operator(text, c)) {
			size_t n;

			c += strlen("operator");
			n = operator_length(c);
			/* `operator new`, `operator bool`: all of it up to the parameters is the
			 * name */
			c += n ? n : strcspn(c, "(<");
			continue;
		}
		if (strchr("(<[{", *c)) {
			if (*c == '(' && !depth)
				parameters = c;
			depth++;
		} else if (strchr(")>]}", *c)) {
			depth -= depth > 0;
		} else if (*c == ' ' && !depth && !(parameters && is_suffix(c + 1))) {
			begin = c + 1;
			parameters = NULL;
		} else if (*c == ':' && !depth) {
			parameters = NULL; /* those belonged to an enclosing function */
		}
		c++;
	}
	if (!parameters || parameters <= begin)
		return text;
	*parameters = '\0';
	return is_prefix(text, begin) ? text : begin;
}

static char *demangle_alone(struct demangler *d, const char *name)
{
	_cleanup_free_ char *whole = NULL;
	char *rust = demangle_rust(name);

	if (rust)
		return rust;
	whole = demangle_cpp(d, name);
	return whole ? strdup(name_alone(whole)) : NULL;
}

char *demangle(struct demangler *d, const char *name)
{
	_cleanup_free_ char *mangled = NULL, *shown = NULL;
	const char *at = strchrnul(name, '@'); /* "@plt", "@@GLIBCXX_3.4" */
	char *whole = NULL;

	if (strncmp(name, "_Z", 2))
		return NULL;
	mangled = strndup(name, (size_t)(at - name));
	shown = mangled ? demangle_alone(d, mangled) : NULL;
	if (!shown || !*at)
		return TAKE_PTR(shown);
	return asprintf(&whole, "%s%s", shown, at) < 0 ? NULL : whole;
}
