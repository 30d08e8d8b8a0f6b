package server_test

import (
	"os"
	"testing"

	"github.com/ecotone-dev/ecotone/host/compile"
)

func TestMain(m *testing.M) {
	compile.RunIfChild()
	os.Exit(m.Run())
}
