package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

const sumsName = "SHA256SUMS"

// writeSums writes the checksums of a folder, as sha256sum does.
func writeSums(folder string) error {
	found, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	for _, f := range found {
		sum, err := sha256Of(filepath.Join(folder, f.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%s  %s\n", sum, f.Name())
	}
	return os.WriteFile(filepath.Join(folder, sumsName), text.Bytes(), 0o644)
}

// sha256Of returns the checksum of a file.
func sha256Of(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
