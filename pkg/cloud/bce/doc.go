// Package bce is the Cloud of one instance of Baidu's cloud: a virtual machine
// (BCC), a bare metal one of the old kind (BBC) or of the new (EBC).
//
// Each method is several calls of the API. What makes them one operation:
//
//   - An ENI that CreateInterface makes says in its description whose it is: the
//     instance, the cluster, its device index, the token, when it was asked for.
//     The API forgets tokens after a day and knows no index; the description is in
//     every answer. The name, enipool-INSTANCE, is what lists are filtered by.
//   - The API has no device index. The instance's own ENI is 0. An ENI of ours
//     keeps the lowest number that was free when it was made, which its description
//     tells; so it stays the same whatever comes and goes. Others' ENIs, and one
//     whose description claims the number of an older one, count down from
//     eni.MaxIndex in the order of their creation.
//   - IPv6 addresses are all secondary in this cloud. The first one that an ENI gets
//     becomes what the rest of enipool calls its primary; the description tells it.
//   - Every call that changes something has a clientToken. That of a creation and of
//     the first addresses comes from the Create's token, so that a repetition in a
//     later process finds what an earlier one did; all others are new each time.
//   - The SDK repeats nothing. A call that may have arrived and has no good answer is
//     ErrUnknown, as is a method that has done a part of its work.
//   - An ENI of which the cloud tells what can't be right is left out and reported,
//     see Client.Quarantined. A wrong answer about the instance itself is an error.
//   - ENIs outlive their instance here: Sweep finds them.
//
// The SDK knows no contexts and shares one HTTP client among all its users, with a
// time limit of 20 minutes. So each call gets a client of its own around one
// transport, bound to its context.
package bce
