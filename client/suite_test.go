package client_test

import (
	"testing"

	"oda/internal/test/embedded"
	"oda/internal/test/suite"
)

// What every engine must do is what a client sees over HTTP.
func TestTheClientSpeaksToAStore(t *testing.T) { suite.RunSpoken(t, embedded.Engine) }
