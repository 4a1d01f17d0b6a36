package sheet_test

import (
	"testing"

	"oda/internal/sheet"
)

func TestATableIsReadAsItIsMeant(t *testing.T) {
	columns := []string{"id", "seconds", "error_type", "detail", "version", "list", "status", "status_at"}
	got := sheet.Table(columns, [][]byte{
		[]byte(`{"id":"a","seconds":-1.5,"error":{"type":"E","detail":"line 1\nline \"2\"\r, end"},"metadata":{"version":2},"other":1,"list":[1,"x,y"],"status":null}`),
		[]byte(`{"id":"=1+1","seconds":null,"error":null,"detail":"\ttab","version":"+1","list":"@x","status":{"status":"-","at":"\r"}}`),
		[]byte(`{"id":"it's","detail":"é, ok","version":"a-b"}`),
		[]byte(`{}`),
	})
	want := "id,seconds,error_type,detail,version,list,status,status_at\r\n" +
		"a,-1.5,E,\"line 1\nline \"\"2\"\"\r, end\",2,\"[1,\"\"x,y\"\"]\",,\r\n" +
		"'=1+1,,,'\ttab,'+1,'@x,'-,\"'\r\"\r\n" +
		"it's,,,\"é, ok\",a-b,,,\r\n" +
		",,,,,,,\r\n"
	if string(got) != want {
		t.Errorf("the table is\n%q, want\n%q", got, want)
	}
}
