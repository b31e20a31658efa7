// Package aws is the driver of Amazon EC2, through aws-sdk-go-v2: how its calls are
// written, what its answers say and what its error codes mean. DESIGN.md beside this file
// names the source of each of these beliefs.
//
// EC2's answers are the truth. Instance metadata lags behind them, so it is asked only
// once, and only for the instance's identity.
//
// A call that changes something is made once. Reads are retried, at a rate that adapts to
// the account's limits.
//
// Credentials come from the SDK's usual places (environment, shared files, web identity,
// container, instance role) and appear in no error, no log and no answer. Only Options say
// where EC2 and the metadata are: AWS_ENDPOINT_URL, AWS_ENDPOINT_URL_EC2,
// AWS_EC2_METADATA_SERVICE_ENDPOINT and the like in the environment or in shared files
// don't redirect these calls. (They do redirect those by which the SDK gets credentials
// from STS or SSO.) An endpoint is https with its certificate verified, or http on this
// machine or its link; AWS_CA_BUNDLE adds authorities.
package aws
