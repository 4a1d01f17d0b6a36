package rawjson

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// benchText returns a document of about 5 KB.
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

// BenchmarkScanner can be compared with other parsers of the same text, below.
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

// BenchmarkScannerRecord scans a record. It is so short that setting up the scanner
// costs more than scanning.
func BenchmarkScannerRecord(b *testing.B) {
	text := []byte(`{"request":"devicecontrol.assign_resources","request_args":{"args":null,"kwargs":{"subarray_id":"1"}},` +
		`"status":"OK","request_sent_at":"2026-03-01T21:04:05.500000Z","response":{"result":"resources are assigned"},` +
		`"response_received_at":"2026-03-01T21:04:05.900000Z"}`)
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
