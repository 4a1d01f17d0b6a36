package web_test

import (
	"os"
	"testing"

	"oda/internal/test/env"
)

func TestMain(m *testing.M) { os.Exit(env.Main(m)) }
