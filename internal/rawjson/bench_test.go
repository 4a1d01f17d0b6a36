package rawjson

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// benchText is a document of about 5 KB.
func benchText(b *testing.B) []byte {
	files, err := filepath.Glob("../../testdata/sbds/*.json")
	if err != nil || len(files) == 0 {
		b.Fatal("there are no documents in testdata/sbds")
	}
	var list [][]byte
	size := 0
	for size < 5000 {
		text, err := os.ReadFile(files[len(list)%len(files)])
		if err != nil {
			b.Fatal(err)
		}
		list, size = append(list, text), size+len(text)
	}
	return append(append([]byte("["), bytes.Join(list, []byte(","))...), ']')
}

// The scanner beside other readers of the same text.
func BenchmarkScanner(b *testing.B) {
	text := benchText(b)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		s := NewScanner(text, depth)
		if _, _, err := s.Skip(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkJSONText(b *testing.B) {
	text := benchText(b)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := jsontext.NewDecoder(bytes.NewBuffer(text)).ReadValue(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodingJSON(b *testing.B) {
	text := benchText(b)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		var v json.RawMessage
		if err := json.Unmarshal(text, &v); err != nil {
			b.Fatal(err)
		}
	}
}
