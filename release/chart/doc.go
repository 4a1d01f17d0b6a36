// Package chart tests the Helm chart in deploy/helm/oda, with Helm itself and with the
// types of Kubernetes. It is a package of its own because both take long to compile.
package chart
