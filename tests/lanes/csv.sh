# PyTorch's CSV of schedules: files that are written back as they were, what our own schedules write, the deadlocks of
# pytorch#172668, and each refusal with its exact message.
n=0
text='F 1 ms
B 1 ms
W 1 ms
hop 0.25 ms'
run() { # what, the file
	n=$((n + 1))
	echo "-- $1"
	printf '%s\n' "$2" >"f$n.csv"
	printf '%s\ncsv f%d.csv\n' "$text" $n >"f$n.pipe"
	"$SBPCC" --simulate="f$n.pipe" --write-schedule="f$n.out" >out 2>err
	status=$?
	if [ $status = 0 ] && tr -d ' ' <"f$n.csv" | cmp -s - "f$n.out"; then
		grep '^span' out
	else
		cat err && echo "exit $status"
	fi
}
run 'one F and one B at a time' '0F0,0F1,,,0B0,0F2,0B1,,0B2
,1F0,1B0,1F1,1B1,1F2,1B2'
run 'blanks, marks, W apart' ' 0UNSHARD , 0F0,0I0 ,0W0,0REDUCE_GRAD,0RESHARD'
run 'overlap, two stages of a rank' '0F0,0F1,3F0,(0F2;3B0)OVERLAP_F_B,(3F1;0I0)OVERLAP_F_B,0W0,3B1,0B1,3F2,3B2,0B2
1F0,1F1,2F0,2F1,1F2,2B0,1B0,2F2,2B1,1B1,2B2,1B2'
run 'sends and receives' '0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1
1RECV_F0,1F0,1B0,1RECV_F1,1SEND_B0,1F1,1B1,1SEND_B1'
run 'sends end when they are received: both ranks send first (interleaved 1F1B, receives moved before F and B)' \
	'0F0,0SEND_F0,0F1,0SEND_F1,2RECV_F0,2F0,2SEND_F0,2RECV_F1,2F1,2SEND_F1,2RECV_B0,2B0,2SEND_B0,2RECV_B1,2B1,2SEND_B1,0RECV_B0,0B0,0RECV_B1,0B1
1RECV_F0,1F0,1SEND_F0,1RECV_F1,1F1,1SEND_F1,3RECV_F0,3F0,3B0,3SEND_B0,3RECV_F1,3F1,3B1,3SEND_B1,1RECV_B0,1B0,1SEND_B0,1RECV_B1,1B1,1SEND_B1'
run 'the same with sends and receives exchanged on odd ranks: 0SEND_F2 stands before 2RECV_B0' \
	'0F0,0SEND_F0,2RECV_F0,0F1,0SEND_F1,2F0,2SEND_F0,2RECV_F1,2F1,2SEND_F1,0F2,0SEND_F2,2RECV_B0,2B0,2SEND_B0,2RECV_F2,2F2,2SEND_F2,2RECV_B1,2B1,2SEND_B1,2RECV_B2,2B2,2SEND_B2,0RECV_B0,0B0,0RECV_B1,0B1,0RECV_B2,0B2
1RECV_F0,1F0,1SEND_F0,1RECV_F1,1F1,3RECV_F0,1SEND_F1,3F0,3B0,3RECV_F1,3SEND_B0,3F1,3B1,1RECV_F2,3SEND_B1,1F2,1SEND_F2,3RECV_F2,3F2,3B2,3SEND_B2,1RECV_B0,1B0,1SEND_B0,1RECV_B1,1B1,1SEND_B1,1RECV_B2,1B2,1SEND_B2'
run 'ranks that wait for each other' '0F0,3F0,3B0,0B0
2F0,1F0,2B0,1B0'
run 'twice' '0F0,0B0,0F0'
run 'something behind the number' '0F0junk,0B0'
run 'no number' '0F,0B0'
run 'a number too many' '0UNSHARD1,0F0,0B0'
run 'a number too large' '0F99999999999,0B0'
run 'an unknown type' '0G0'
run 'micro-batches with a hole' '0F0,0F2,0B0,0B2'
run 'a stage on two ranks' '0F0,0B0
0F1,0B1'
run 'a stage that is missing' '0F0,0B0
2F0,2B0'
run 'a rank without an action' '0F0,0B0

1F0,1B0'
run 'backward before forward' '0B0,0F0'
run 'W before I' '0F0,0W0,0I0'
run 'W without I' '0F0,0B0,0W0'
run 'no W' '0F0,0I0'
run 'a pair of two F' '(0F0;0F1)OVERLAP_F_B,0B0,0B1'
run 'half a pair' '(0F0)OVERLAP_F_B'
run 'a send to nobody' '0F0,0SEND_F0,0B0'
run 'a send that is missing' '0F0,0RECV_B0,0B0
1RECV_F0,1F0,1B0,1SEND_B0'
run 'a send before what it sends' '0SEND_F0,0F0,0RECV_B0,0B0
1RECV_F0,1F0,1B0,1SEND_B0'
run 'sent and received in different orders' '0F0,0F1,0SEND_F1,0SEND_F0,0RECV_B0,0B0,0RECV_B1,0B1
1RECV_F0,1F0,1RECV_F1,1F1,1B0,1SEND_B0,1B1,1SEND_B1'
run 'micro-batches of a stage in another order than those of the stage before' '0F0,0F1,0B0,0B1
1F1,1F0,1B0,1B1'
run 'gathered twice, with the parameters let go between' '0UNSHARD,0F0,0RESHARD,0UNSHARD,0B0,0REDUCE_GRAD,0RESHARD'
run 'used before UNSHARD' '0F0,0UNSHARD,0B0'
run 'used behind RESHARD' '0UNSHARD,0F0,0RESHARD,0B0'
run 'UNSHARD while gathered' '0UNSHARD,0F0,0UNSHARD,0B0'
run 'RESHARD of what was never gathered' '0F0,0B0,0RESHARD'
run 'RESHARD twice' '0UNSHARD,0F0,0B0,0RESHARD,0RESHARD'
run 'REDUCE_GRAD before the last W' '0F0,0F1,0I0,0W0,0REDUCE_GRAD,0I1,0W1'
run 'REDUCE_GRAD before the last B' '0F0,0F1,0B0,0REDUCE_GRAD,0B1'
run 'REDUCE_GRAD twice' '0F0,0B0,0REDUCE_GRAD,0REDUCE_GRAD'
: >empty.csv
printf 'F 1\nB 1\ncsv empty.csv\n' >empty.pipe && "$SBPCC" --simulate=empty.pipe 2>&1
printf 'F 1\nB 1\nmicros 3\ncsv f1.csv\nranks 3\n' >two.pipe && "$SBPCC" --simulate=two.pipe 2>&1
printf 'F 1\nB 1\nschedule 1f1b\ncsv f1.csv\nranks 3\n' >two.pipe && "$SBPCC" --simulate=two.pipe 2>&1

# What the named schedules write is read again, and costs the same.
for s in gpipe 1f1b pe zb-h1 zb-h2 interleaved zb-v v-half v-min dualpipev; do
	stages=4
	case $s in interleaved | *-v | v-* | dualpipev) stages=8 ;; esac
	printf '%s\nranks 4\nmicros 7\nstages %d\nschedule %s\n' "$text" $stages $s >$s.pipe
	printf '%s\ncsv %s.csv\n' "$text" $s >again.pipe
	"$SBPCC" --simulate=$s.pipe --write-schedule=$s.csv | grep '^span' >first
	"$SBPCC" --simulate=again.pipe --write-schedule=again.csv | grep '^span' >second
	cmp first second && cmp $s.csv again.csv && echo "$s is read as it was written"
done
