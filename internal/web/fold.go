package web

import (
	"bytes"
	"html/template"
	"strconv"

	"oda"
	"oda/internal/rawjson"
)

// Bounds of a document on a page. What is beyond them is left to the download.
const (
	foldValues = 4000
	foldBytes  = 150 << 10 // of keys and values, which may hardly compress
	foldDepth  = 100       // levels, which no document exceeds that was stored over HTTP
	openValues = 300       // up to which everything is unfolded
	longString = 4000
)

// folder writes a document as HTML in which every object and list can be folded
// without a script. Everything that comes from the document is escaped.
type folder struct {
	scan   *rawjson.Scanner
	text   []byte
	out    bytes.Buffer
	links  map[string]string // addresses of identifiers
	values int
	bytes  int  // of keys and values
	cut    bool // something was left out
	ended  bool // there is no room for the rest
	open   bool // everything is unfolded
	block  bool // its records are shown elsewhere
}

// fold writes a document that is stored, and reports whether some of it was
// left out.
func fold(text []byte, kind oda.Kind, links map[string]string) (template.HTML, bool) {
	f := folder{
		scan: rawjson.NewScanner(text, 1<<20), text: text, links: links,
		open: bytes.Count(text, []byte(",")) < openValues, block: kind == oda.ExecutionBlock,
	}
	f.value("", 0)
	return template.HTML(f.out.String()), f.cut // #nosec G203 -- everything in it was escaped
}

// value writes the next value, after its key, in quotes, if it has one.
func (f *folder) value(key string, depth int) {
	kind, err := f.scan.Peek()
	if err != nil { // what is stored was checked
		f.cut = true
		return
	}
	if f.values > foldValues || f.bytes > foldBytes || depth > foldDepth {
		f.out.WriteString(`<div><span class="muted">The rest is not shown here: the document is long</span></div>`)
		f.cut, f.ended = true, true
		return
	}
	f.values++
	switch {
	case kind != rawjson.Object && kind != rawjson.Array:
		start, end, _ := f.scan.Skip()
		f.line(key, func() { f.scalar(kind, f.text[start:end]) })
	case f.block && depth == 1 && key == `"request_responses"`:
		_, _, _ = f.scan.Skip()
		f.line(key, func() { f.out.WriteString(`<a href="#calls">the calls, shown above</a>`) })
	case kind == rawjson.Object:
		f.object(key, depth)
	default:
		f.list(key, depth)
	}
}

func (f *folder) object(key string, depth int) {
	if _, err := f.scan.BeginObject(); err != nil {
		return
	}
	f.inside(key, "{", "}", "member", depth, func() bool {
		name, more, err := f.scan.NextKey()
		if !more || err != nil {
			return false
		}
		f.value(strconv.Quote(string(name)), depth+1)
		return true
	})
}

func (f *folder) list(key string, depth int) {
	if _, err := f.scan.BeginArray(); err != nil {
		return
	}
	f.inside(key, "[", "]", "element", depth, func() bool {
		more, err := f.scan.NextElement()
		if !more || err != nil {
			return false
		}
		f.value("", depth+1)
		return true
	})
}

// inside writes an object or list with what next writes of it.
func (f *folder) inside(key, begin, end, of string, depth int, next func() bool) {
	var outer bytes.Buffer
	outer, f.out = f.out, bytes.Buffer{}
	n, many := 0, ""
	for !f.ended && next() {
		n++
	}
	if f.ended {
		many = "at least "
	}
	inner := f.out
	f.out = outer
	if n == 0 {
		f.line(key, func() { f.out.WriteString(begin + end) })
		return
	}
	f.out.WriteString(`<details`)
	if f.open || depth < 2 {
		f.out.WriteString(` open`)
	}
	f.out.WriteString(`><summary>`)
	f.key(key)
	f.out.WriteString(begin + `<span class="fold"> ` + many + template.HTMLEscapeString(plural(int64(n), of)) + ` ` + end + `</span></summary><div class="in">`)
	f.out.Write(inner.Bytes())
	f.out.WriteString(`</div><div class="end">` + end + `</div></details>`)
}

func (f *folder) line(key string, value func()) {
	f.out.WriteString(`<div>`)
	f.key(key)
	value()
	f.out.WriteString(`</div>`)
}

func (f *folder) key(key string) {
	if key != "" {
		f.bytes += len(key)
		f.out.WriteString(`<span class="key">` + template.HTMLEscapeString(key) + `</span>: `)
	}
}

// scalar writes a value: a number as it is spelled in the document, a string as it
// is read.
func (f *folder) scalar(kind rawjson.Kind, text []byte) {
	shown := beginning(string(text), longString)
	f.cut = f.cut || len(text) > longString
	f.bytes += len(shown)
	escaped := template.HTMLEscapeString(readable(shown))
	if kind != rawjson.String {
		f.out.WriteString(`<span class="plain">` + escaped + `</span>`)
		return
	}
	if to, ok := f.links[rawjson.Unquote(text)]; ok {
		f.out.WriteString(`<a class="str" href="` + template.HTMLEscapeString(to) + `">` + escaped + `</a>`)
		return
	}
	f.out.WriteString(`<span class="str">` + escaped + `</span>`)
}

// told are the top-level members that the summary shows in addition to what search
// knows, if they are short texts or numbers.
var told = []fact{
	{Name: "status", Value: "Status as written"}, // what was said since stands above it
	{Name: "description", Value: "Description"},
	{Name: "subarray_id", Value: "Subarray"},
	{Name: "executed_on", Value: "Executed on"},
}

// facts reads what a document says of itself, and the names of its activities.
func facts(text []byte) []fact {
	values := make(map[string]string)
	for key, value := range rawjson.Members(text) {
		switch name := string(key); {
		case name == "activities" && value[0] == '{':
			values[name] = activities(value)
		case value[0] == '"':
			values[name] = rawjson.Unquote(value)
		case value[0] != '{' && value[0] != '[' && string(value) != "null":
			values[name] = string(value)
		}
	}
	var all []fact
	for _, f := range append([]fact{{Name: "activities", Value: "Activities"}}, told...) {
		if value := values[f.Name]; value != "" && len(value) <= 500 {
			all = append(all, fact{f.Value, value})
		}
	}
	return all
}

// activities names the activities of an SBDefinition.
func activities(object []byte) string {
	names := ""
	for key := range rawjson.Members(object) {
		if names = joined(names, string(key)); len(names) > 500 {
			break
		}
	}
	return names
}

func joined(text, next string) string {
	if text == "" {
		return next
	}
	return text + ", " + next
}
