// Package aws is the Cloud of one EC2 instance, through aws-sdk-go-v2.
//
// EC2's answers are the truth. Instance metadata, which lags behind them, is asked
// for who the node is, once, and for nothing else.
//
// A call that changes something is made once: what it did when its answer is lost
// is found by a describe, or by the token that each ENI carries as a tag. Reads are
// retried, at a rate that adapts to the account's limits, and so are later steps of a
// method that EC2 refuses for its rate.
//
// All nodes of an account share that rate. What Interfaces has shown a short while ago
// is not asked for again before a change: a change that fails because it was wrong is
// made again after a describe, and a client token keeps a creation from a second ENI.
//
// An ENI of which EC2 tells what can't be right (no MAC, an address outside of its
// subnet, another instance's) is left out and reported, see Client.Quarantined. So
// are ENIs that pods must never use: those with the tag
// node.k8s.amazonaws.com/no_manage, of another network card than the first, other
// services', trunks, branches and EFA. An ENI that somebody else attached is shown,
// and not Ours.
//
// Credentials come from the SDK's usual places (environment, shared files, web
// identity, container, instance role) and appear in no error and no log. Where EC2
// and the metadata are is said by Options alone: AWS_ENDPOINT_URL,
// AWS_ENDPOINT_URL_EC2, AWS_EC2_METADATA_SERVICE_ENDPOINT and the like in the
// environment or in shared files don't redirect them. (They do redirect the calls by
// which the SDK gets credentials from STS or SSO.) An endpoint is https with its
// certificate verified, or http on this machine or link; AWS_CA_BUNDLE adds
// authorities.
package aws
