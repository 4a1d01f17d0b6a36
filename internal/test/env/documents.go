package env

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"

	"oda"
	"oda/internal/test/must"
)

// documentsVariable names a folder with real documents.
const documentsVariable = "ODA_TEST_DOCUMENTS"

// Document is a document of the test data.
type Document struct {
	Name string
	Kind oda.Kind
	Text []byte
}

// OwnDocuments returns the documents in testdata.
func OwnDocuments(tb testing.TB) []Document {
	tb.Helper()
	all := documents(tb, filepath.Join(repository(tb), "testdata"))
	if len(all) < 15 {
		tb.Fatalf("testdata has only %d documents", len(all))
	}
	return all
}

// RealDocuments returns documents of an observatory, which are not in the
// repository. If there are none, the test is skipped.
func RealDocuments(tb testing.TB) []Document {
	tb.Helper()
	folder := cmp.Or(os.Getenv(documentsVariable), filepath.Join(repository(tb), "..", "shared", "data", "pdm"))
	all := documents(tb, folder)
	if len(all) == 0 {
		tb.Skipf("there are no real documents in %s; %s can name another folder", folder, documentsVariable)
	}
	return all
}

// repository returns the folder of the module.
func repository(tb testing.TB) string {
	tb.Helper()
	dir := must.Get(filepath.Abs("."))(tb)
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		above := filepath.Dir(dir)
		if above == dir {
			tb.Fatal("the test does not run in the repository")
		}
		dir = above
	}
}

func documents(tb testing.TB, folder string) []Document {
	tb.Helper()
	var all []Document
	for _, kind := range oda.Kinds {
		files := must.Get(filepath.Glob(filepath.Join(folder, kind.Collection(), "*.json")))(tb)
		for _, file := range files {
			text := must.Get(os.ReadFile(file))(tb)
			all = append(all, Document{kind.Collection() + "/" + filepath.Base(file), kind, text})
		}
	}
	return all
}
