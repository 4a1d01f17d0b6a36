package client_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"oda/client"
)

func ExampleClient_Night() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"from":"2026-03-01T10:00:00.000000Z","to":"2026-03-02T10:00:00.000000Z","calls":120,"failures":2,"seconds_in_calls":3600.5,
			"blocks":[],"slowest":[],"failures_by_request":[{"request":"observe.scan","failures":2,"calls":40}]}`)
	}))
	defer server.Close()
	archive, err := client.New(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	night, err := archive.Night(bg, client.Night{Date: "2026-03-01", Zone: "Africa/Johannesburg"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d of %d calls failed\n", night.Tally.Failures, night.Calls)
	for _, r := range night.FailuresByRequest {
		fmt.Printf("%s: %d of %d\n", r.Request, r.Failures, r.Calls)
	}
	// Output:
	// 2 of 120 calls failed
	// observe.scan: 2 of 40
}
