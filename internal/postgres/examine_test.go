package postgres_test

import (
	"strings"
	"testing"

	"oda/internal/postgres"
	"oda/internal/test/env"
)

// Each question about a database finds what it asks for. What takes an hour or a
// thousand million transactions to come about is asked for at once.
func TestEachQuestionAboutADatabaseIsAnswered(t *testing.T) {
	t.Parallel()
	cluster := env.NewCluster(t, env.ClusterOptions{Settings: map[string]string{
		"fsync": "off", "full_page_writes": "off", "autovacuum": "off", "synchronous_commit": "off", "max_prepared_transactions": "2",
	}})
	conn, other := connect(t, cluster.DSN("postgres")), connect(t, cluster.DSN("postgres"))
	do(t, conn, "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'", "SELECT pg_create_physical_replication_slot('forgotten', true)",
		"BEGIN", "SELECT pg_current_xact_id()", "PREPARE TRANSACTION 'forgotten'")
	do(t, other, "BEGIN", "SELECT 1")
	latin := connect(t, cluster.DSN("latin"))
	sooner := strings.NewReplacer("1 hour", "0 seconds", "> 1000000000", "> 0", "< 140000", "< 990000")
	for _, question := range postgres.Questions() {
		asked := conn
		if strings.Contains(question, "server_encoding") {
			asked = latin
		}
		if n := query[int64](t, asked, "SELECT count(*) FROM ("+sooner.Replace(question)+") q"); n == 0 {
			t.Errorf("nothing is found by %s", question)
		}
	}
	do(t, conn, "ROLLBACK PREPARED 'forgotten'")
}
