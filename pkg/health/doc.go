// Package health judges whether a node can give its pods addresses. It turns what
// the agent sees into a report for the cluster that comes after a grace and goes
// after a quiet time, so that nodes don't swing. It is pure: time is an argument,
// and what it has to remember is a State that the caller keeps.
package health
