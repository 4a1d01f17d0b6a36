package web

import (
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"oda"
)

func TestMarkdownOfNotes(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"Wind, **stopped** for 40 minutes", "<p>Wind, <strong>stopped</strong> for 40 minutes</p>"},
		{"# Title\n\n- one\n- ~~two~~\n", "<h4>Title</h4>\n<ul>\n<li>one</li>\n<li><del>two</del></li>\n</ul>"},
		{"###### deep", "<h6>deep</h6>"},
		{"`a<b`", "<p><code>a&lt;b</code></p>"},
		{"<b>bold</b>", "<p>&lt;b&gt;bold&lt;/b&gt;</p>"},
		{"<script>alert(1)</script>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>"},
		{"<!-- x -->\n\n<div onclick=\"x\">\n", "<p>&lt;!-- x --&gt;</p>\n<p>&lt;div onclick=&quot;x&quot;&gt;</p>"},
		{"![receptor](https://example.org/a.png)", "<p>receptor</p>"},
		{"[the *ticket*](https://example.org/REC-17 \"title\")", `<p><a href="https://example.org/REC-17" rel="noreferrer nofollow">the <em>ticket</em></a></p>`},
		{"see https://example.org/REC-17.", `<p>see <a href="https://example.org/REC-17" rel="noreferrer nofollow">https://example.org/REC-17</a>.</p>`},
		{"<night@example.org>", `<p><a href="mailto:night@example.org" rel="noreferrer nofollow">night@example.org</a></p>`},
		{"[x](javascript:alert(1))", "<p>x</p>"},
		{"[x](JaVaScRiPt&colon;alert(1))", "<p>x</p>"},
		{"[x](&#106;avascript:alert(1))", "<p>x</p>"},
		{"[x]( data:text/html,<script>1</script>)", "<p>x</p>"},
		{"<javascript:alert(1)>", "<p>javascript:alert(1)</p>"},
		{"[x][r]\n\n[r]: vbscript:x", "<p>[x][r]</p>\n<p>[r]: vbscript:x</p>"},
		{strings.Repeat("> ", 9) + "<x>", "<pre>" + strings.Repeat("&gt; ", 9) + "&lt;x&gt;</pre>"},
		{"[home](/api/v1) [up](..) [here](#x) [slashes](//evil.example)", "<p>home up here slashes</p>"},
		{"ftp://example.org/x", "<p>ftp://example.org/x</p>"},
		{"[![](x)](javascript:1)", "<p></p>"},
		{"a\\\nb", "<p>a<br>\nb</p>"},
		{"", ""},
	} {
		if got := strings.TrimSpace(string(showMarkdown(test.text))); got != test.want {
			t.Errorf("%q is shown as\n%s, want\n%s", test.text, got, test.want)
		}
	}
}

// allowed is what may stand in what is shown of a note.
var allowed = regexp.MustCompile(`^(?:[^<>]|</?(?:p|strong|em|del|code|pre|ul|ol|li|blockquote|h4|h5|h6|a)>|<br>|<hr>|<ol start="\d+">|<pre><code class="language-[^"<>]*">|<code class="language-[^"<>]*">|<a href="(?:https?://|mailto:)[^"<>]*" rel="noreferrer nofollow">)*$`)

func FuzzMarkdownOfNotes(f *testing.F) {
	for _, text := range []string{
		"# a\n**b** [c](https://d) <e> ![f](g)\n\n1. h\n   > i\n\n```go\nj\n```\n", "<a@b.c> www.d.e https://f \"'&", "[a]: javascript:b\n[a][]", "~~~x\" onclick=1\ny",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got := string(showMarkdown(text)); !allowed.MatchString(got) {
			t.Errorf("%q is shown as %s", text, got)
		}
	})
}

// What takes a reader of Markdown longest takes it little more than a plain text.
func TestAbsurdMarkdownTakesLittle(t *testing.T) {
	took := func(text string) time.Duration {
		least := time.Duration(math.MaxInt64)
		for range 3 {
			began := time.Now()
			showMarkdown(text)
			least = min(least, time.Since(began))
		}
		return least
	}
	plain := took(strings.Repeat("a word\n\n", oda.MaxNoteText/8))
	for _, one := range []string{
		">", "> ", "[", "*a ", "![", "- ", "`a", "<a", "[a](", "* _", "a@", "~~a", "\n> -", "[a]: b\n", "1. ", "http://", "www.", "- a\n  ", "#", "\n\n\t", "***", "&amp;", "\\",
	} {
		text := strings.Repeat(one, oda.MaxNoteText/len(one))
		if took := max(took(text), took(text[:min(len(text), 400*len(one))])); took > 50*plain {
			t.Errorf("a text of %q takes %v, and a plain one %v", one, took, plain)
		}
	}
}
