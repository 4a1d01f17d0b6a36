package spelling

import "testing"

func TestNearest(t *testing.T) {
	words := []string{"created_by", "last_modified_by", "limit", "sort"}
	for _, c := range []struct {
		from, want string
		changes    int
	}{
		{"limit", "limit", 0},
		{"limits", "limit", 1},
		{"createdby", "created_by", 1},
		{"modified_by", "last_modified_by", 5},
		{"", "sort", 4},
	} {
		if got, changes := Nearest(c.from, words); got != c.want || changes != c.changes {
			t.Errorf("%q: %s after %d changes, want %s after %d", c.from, got, changes, c.want, c.changes)
		}
	}
}
