package sheet_test

import (
	"encoding/csv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oda/internal/sheet"
)

func TestATableIsWhatItsValuesSay(t *testing.T) {
	columns := []string{"id", "n", "status", "class", "error_type", "note"}
	for _, test := range []struct {
		value string
		line  string
	}{
		{`{"n":-1.5,"id":"eb-1"}`, "eb-1,-1.5,,,,"},
		{`{"id":null,"n":0,"note":false,"x":1}`, ",0,,,,false"},
		{`{"status":{"status":"Failed","class":"failed"},"error":{"type":"Gone","detail":"x"}}`, ",,Failed,failed,Gone,"},
		{`{"status":null,"error":null}`, ",,,,,"},
		{`{"id":"=1+1","note":"+a"}`, "'=1+1,,,,,'+a"},
		{`{"id":"@a","note":"-2"}`, "'@a,,,,,'-2"},
		{`{"id":"\ta","note":"\ra"}`, "'\ta,,,,,\"'\ra\""},
		{`{"id":"a,b","note":"say \"x\"\nand"}`, "\"a,b\",,,,,\"say \"\"x\"\"\nand\""},
		{`{"id":" a","note":"\u001b[2Jé\u009b"}`, "\" a\",,,,,�[2Jé�"},
		{`{"note":[1, {"a": "b"}]}`, `,,,,,"[1,{""a"":""b""}]"`},
		{`"alone"`, "alone,,,,,"},
	} {
		var sent, shown strings.Builder
		table, err := sheet.New(&sent, columns)
		if err == nil {
			err = table.Add([]byte(test.value))
		}
		if want := strings.Join(columns, ",") + "\r\n" + test.line + "\r\n"; err != nil || sent.String() != want {
			t.Errorf("%s is %q, want %q, and %v", test.value, sent.String(), want, err)
		}
		rows, err := csv.NewReader(strings.NewReader(sent.String())).ReadAll()
		if err != nil || len(rows) != 2 || len(rows[1]) != len(columns) {
			t.Errorf("%s is read as %q, and %v", test.value, rows, err)
		}
		table, err = sheet.NewShown(&shown, columns, strings.ToUpper)
		if err == nil {
			err = table.Add([]byte(test.value))
		}
		if want := strings.ToUpper(strings.Join(columns, ",")) + "\n"; err != nil || !strings.HasPrefix(shown.String(), want) {
			t.Errorf("%s is shown as %q, and %v", test.value, shown.String(), err)
		}
	}
}

func TestValuesAreRows(t *testing.T) {
	type row struct {
		Name string  `json:"name"`
		N    float64 `json:"n"`
	}
	var out strings.Builder
	table, err := sheet.New(&out, []string{"n", "name"})
	if err == nil {
		err = sheet.AddAll(table, []row{{"a", 1}, {"<b>", -2}})
	}
	if diff := cmp.Diff("n,name\r\n1,a\r\n-2,<b>\r\n", out.String()); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}
