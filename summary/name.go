package summary

import (
	"oda"
	"oda/internal/rawjson"
	"oda/internal/words"
)

// NameOf returns the name that is in the summary of a version, without making the summary,
// which takes several times as long.
func NameOf(e *oda.Entity) (string, error) {
	text, err := e.WithoutRecords()
	if err != nil {
		return "", err
	}
	title := ""
	for key, value := range rawjson.Members(text) {
		if value[0] != '"' {
			continue
		}
		switch interest(key) {
		case ofName:
			if name := rawjson.Unquote(value); name != "" {
				return words.Cut(name, oda.MaxName), nil
			}
		case ofTitle:
			title = rawjson.Unquote(value)
		}
	}
	return words.Cut(title, oda.MaxName), nil
}
