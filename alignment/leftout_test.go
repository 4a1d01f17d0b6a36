package alignment

import "testing"

func TestWhatEveryRunHasOthersOfIsLeftOut(t *testing.T) {
	for value, want := range map[string][2]string{
		`{"args":[],"kwargs":{"scan_id":7,"subarray_id":1}}`:           {`{"args":[],"kwargs":{}}`, `{"args":[],"kwargs":{"scan_id":7,"subarray_id":1}}`},
		"{ \"a\" : [ 1 , {\"scan_id\": 2, \"b\": [] } ],\n\"c\":null}": {`{"a":[1,{"b":[]}],"c":null}`, `{"a":[1,{"scan_id":2,"b":[]}],"c":null}`},
		`{"scan_id_of":"scan_id","\u0062":"subarray_id"}`:              {`{"scan_id_of":"scan_id","b":"subarray_id"}`, `{"scan_id_of":"scan_id","b":"subarray_id"}`},
		`"scan_id"`: {`"scan_id"`, `"scan_id"`},
		`1.0`:       {`1.0`, `1.0`},
		``:          {``, ``},
	} {
		for i, isExact := range []bool{false, true} {
			got := ""
			Essential([]byte(value), isExact, func(piece []byte) { got += string(piece) })
			if got != want[i] {
				t.Errorf("%s becomes %s, want %s (exact: %v)", value, got, want[i], isExact)
			}
		}
	}
}
