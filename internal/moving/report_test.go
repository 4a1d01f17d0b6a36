package moving

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"oda/internal/test/must"
)

func TestALineOfAReportIsJSONWithTheWholeDocument(t *testing.T) {
	for name, test := range map[string]struct{ document, key, want string }{
		"JSON":                   {`{"sbd_id": "sbd-1"}`, "document", `{"sbd_id":"sbd-1"}`},
		"a lone surrogate":       {`{"name":"\ud800"}`, "document", `{"name":"\ud800"}`},
		"cut off":                {`{"sbd_id":`, "text", `"{\"sbd_id\":"`},
		"no UTF-8, else JSON":    {"{\"name\":\"\xff\xfe\"}", "base64", `"` + base64.StdEncoding.EncodeToString([]byte("{\"name\":\"\xff\xfe\"}")) + `"`},
		"neither UTF-8 nor JSON": {"\xff{", "base64", `"` + base64.StdEncoding.EncodeToString([]byte("\xff{")) + `"`},
		"empty":                  {"", "reason", `"bad"`},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			must.Do(t, NewReport(&out, func(SetAside) {}).setAside(SetAside{Reason: "bad", Document: []byte(test.document)}))
			var line map[string]json.RawMessage
			if err := json.Unmarshal(out.Bytes(), &line); err != nil || !utf8.Valid(out.Bytes()) {
				t.Fatalf("%s: %v", out.Bytes(), err)
			}
			if string(line[test.key]) != test.want {
				t.Errorf("%s, want %s as %s", out.Bytes(), test.want, test.key)
			}
		})
	}
}
