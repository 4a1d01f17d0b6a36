package content

import (
	"net/http"
	"strings"
)

// Preferred gives the media type that the client likes best of those that there
// are: the first where it likes several equally, or none of them.
func Preferred(h http.Header, offered ...string) string {
	best, most := offered[0], 0.0
	for _, media := range offered {
		if w := liking(h["Accept"], media); w > most {
			best, most = media, w
		}
	}
	return best
}

// liking is the weight of the most specific item of Accept that a media type
// fits.
func liking(accept []string, media string) float64 {
	family, _, _ := strings.Cut(media, "/")
	found, specific := 0.0, 0
	for _, value := range accept {
		for item := range strings.SplitSeq(value, ",") {
			name, params, _ := strings.Cut(item, ";")
			fits := 0
			switch strings.ToLower(strings.TrimSpace(name)) {
			case media:
				fits = 3
			case family + "/*":
				fits = 2
			case "*/*":
				fits = 1
			}
			if fits > specific {
				found, specific = weight(params), fits
			}
		}
	}
	return found
}
