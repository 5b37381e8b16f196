"""The batch loop and the threads, in native code: a whole epoch without Python.

``run`` goes through batches. For each it copies the batch's row numbers, sets the learning rate and the step, and
goes through a table of steps. A step is five 64-bit numbers:

    what to call · the address of its arguments · how far it goes · into how many parts · how long a part is

A step of several parts is done by whoever is there: the caller takes one part after the other, and so do helping
threads in ``work``. The parts, and so all numbers, are the same whoever does them; a thread that is kept from running
costs its time, never a different result.

Memory that ``run`` is given (``control``), each a 64-bit number: see `Control`.
"""

from __future__ import annotations

from enum import IntEnum


class Control(IntEnum):
    """What stands where in the memory that ``run`` is given."""

    STEPS = 0  # the address of the table for whole batches
    STEP_COUNT = 1
    LAST_STEPS = 2  # the same for a shorter last batch
    LAST_STEP_COUNT = 3
    BATCH = 4  # rows in a whole batch
    ROWS = 5  # rows in all
    ORDER = 6  # the address of all row numbers, and one more
    ROW_NUMBERS = 7  # where those of one batch are copied to, and the next
    RATES = 8  # the address of the learning rates, or 0
    RATE = 9  # where the rate of one batch is copied to
    STEP = 10  # where the number of the step is written, as a double
    FIRST_STEP = 11
    POOL = 12  # the address of the memory shared with other threads; its parts are done by one when 0


class Pool(IntEnum):
    """What stands where in the memory that threads share; what changes often has a cache line of its own."""

    TICKET = 0  # number of the job · how many parts it has (16 bits) · the next part to do (16 bits)
    DONE = 8
    STOP = 16
    CALL = 24
    ARGUMENTS = 25
    EXTENT = 26
    PART = 27


POOL_SIZE = 32

TEXT = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
{declarations}

define internal i32 @part(ptr %pool, i64 %number) #0 {{
  %call.at = getelementptr i64, ptr %pool, i64 {CALL}
  %call = load ptr, ptr %call.at
  %arguments.at = getelementptr i64, ptr %pool, i64 {ARGUMENTS}
  %arguments = load ptr, ptr %arguments.at
  %extent.at = getelementptr i64, ptr %pool, i64 {EXTENT}
  %extent = load i64, ptr %extent.at
  %part.at = getelementptr i64, ptr %pool, i64 {PART}
  %part = load i64, ptr %part.at
  %first = mul i64 %number, %part
  %end = add i64 %first, %part
  %short = icmp slt i64 %extent, %end
  %last = select i1 %short, i64 %extent, i64 %end
  %status = call i32 %call(ptr %arguments, i64 %first, i64 %last)
  %done.at = getelementptr i64, ptr %pool, i64 {DONE}
  %before = atomicrmw add ptr %done.at, i64 1 release
  ret i32 %status
}}

; take one part that nobody has taken; false when there is none
define internal i1 @take(ptr %pool) #0 {{
  %ticket = load atomic i64, ptr %pool acquire, align 8
  %next = and i64 %ticket, 65535
  %shifted = lshr i64 %ticket, 16
  %parts = and i64 %shifted, 65535
  %left = icmp ult i64 %next, %parts
  br i1 %left, label %claim, label %none
claim:
  %following = add i64 %ticket, 1
  %pair = cmpxchg ptr %pool, i64 %ticket, i64 %following acq_rel acquire
  %claimed = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %claimed, label %do, label %retry
do:
  %status = call i32 @part(ptr %pool, i64 %next)
  br label %retry
retry:
  ret i1 true
none:
  ret i1 false
}}

; wait a little, after so many times in vain; return how many they are now
define internal i64 @pause(i64 %waited) #0 {{
  %longer = add i64 %waited, 1
  %long = icmp ugt i64 %longer, {PATIENCE}
  br i1 %long, label %yield, label %pausing
yield:
  {give_way}
  br label %pausing
pausing:
  {pause}
  ret i64 %longer
}}

define void @work(ptr %pool) #0 {{
entry:
  %stop.at = getelementptr i64, ptr %pool, i64 {STOP}
  br label %look
look:
  %waited = phi i64 [ 0, %entry ], [ 0, %look ], [ %longer, %wait ]
  %taken = call i1 @take(ptr %pool)
  br i1 %taken, label %look, label %wait
wait:
  %longer = call i64 @pause(i64 %waited)
  %stop = load atomic i64, ptr %stop.at acquire, align 8
  %stopped = icmp ne i64 %stop, 0
  br i1 %stopped, label %end, label %look
end:
  ret void
}}

define internal void @share(ptr %pool, ptr %call, ptr %arguments, i64 %extent, i64 %parts, i64 %part) #0 {{
entry:
  %call.at = getelementptr i64, ptr %pool, i64 {CALL}
  store ptr %call, ptr %call.at
  %arguments.at = getelementptr i64, ptr %pool, i64 {ARGUMENTS}
  store ptr %arguments, ptr %arguments.at
  %extent.at = getelementptr i64, ptr %pool, i64 {EXTENT}
  store i64 %extent, ptr %extent.at
  %part.at = getelementptr i64, ptr %pool, i64 {PART}
  store i64 %part, ptr %part.at
  %done.at = getelementptr i64, ptr %pool, i64 {DONE}
  store atomic i64 0, ptr %done.at release, align 8
  %ticket = load atomic i64, ptr %pool acquire, align 8
  %job = lshr i64 %ticket, 32
  %following = add i64 %job, 1
  %high = shl i64 %following, 32
  %middle = shl i64 %parts, 16
  %new = or i64 %high, %middle
  store atomic i64 %new, ptr %pool release, align 8
  br label %mine
mine:
  %taken = call i1 @take(ptr %pool)
  br i1 %taken, label %mine, label %wait
wait:
  %waited = phi i64 [ 0, %mine ], [ %longer, %wait ]
  %longer = call i64 @pause(i64 %waited)
  %done = load atomic i64, ptr %done.at acquire, align 8
  %all = icmp sge i64 %done, %parts
  br i1 %all, label %end, label %wait
end:
  ret void
}}

; do the batches from %first to before %last; return the first that stopped, or %last
define i64 @run(ptr %control, i64 %first, i64 %last) #0 {{
entry:
{loads}
  %order.pointer = inttoptr i64 %ORDER to ptr
  %numbers.pointer = inttoptr i64 %ROW_NUMBERS to ptr
  %rates.pointer = inttoptr i64 %RATES to ptr
  %rate.pointer = inttoptr i64 %RATE to ptr
  %step.pointer = inttoptr i64 %STEP to ptr
  %pool = inttoptr i64 %POOL to ptr
  %has.rates = icmp ne i64 %RATES, 0
  %has.pool = icmp ne i64 %POOL, 0
  br label %batches
batches:
  %batch = phi i64 [ %first, %entry ], [ %batch.next, %batch.end ]
  %more = icmp slt i64 %batch, %last
  br i1 %more, label %begin, label %end
begin:
  %row = mul i64 %batch, %BATCH
  %left = sub i64 %ROWS, %row
  %short = icmp slt i64 %left, %BATCH
  %n = select i1 %short, i64 %left, i64 %BATCH
  %table = select i1 %short, i64 %LAST_STEPS, i64 %STEPS
  %count = select i1 %short, i64 %LAST_STEP_COUNT, i64 %STEP_COUNT
  %steps = inttoptr i64 %table to ptr
  %rows.at = getelementptr i64, ptr %order.pointer, i64 %row
  %with.next = add i64 %n, 1
  %bytes = mul i64 %with.next, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %numbers.pointer, ptr %rows.at, i64 %bytes, i1 false)
  %number = add i64 %FIRST_STEP, %batch
  %number.double = sitofp i64 %number to double
  store double %number.double, ptr %step.pointer
  br i1 %has.rates, label %rate, label %steps.begin
rate:
  %rate.at = getelementptr double, ptr %rates.pointer, i64 %batch
  %rate.now = load double, ptr %rate.at
  store double %rate.now, ptr %rate.pointer
  br label %steps.begin
steps.begin:
  br label %steps.loop
steps.loop:
  %s = phi i64 [ 0, %steps.begin ], [ %s.next, %step.end ]
  %s.more = icmp slt i64 %s, %count
  br i1 %s.more, label %step, label %batch.end
step:
  %offset = mul i64 %s, 5
  %record = getelementptr i64, ptr %steps, i64 %offset
  %call = load ptr, ptr %record
  %arguments.at = getelementptr i64, ptr %record, i64 1
  %arguments = load ptr, ptr %arguments.at
  %extent.at = getelementptr i64, ptr %record, i64 2
  %extent = load i64, ptr %extent.at
  %parts.at = getelementptr i64, ptr %record, i64 3
  %parts = load i64, ptr %parts.at
  %part.at = getelementptr i64, ptr %record, i64 4
  %part = load i64, ptr %part.at
  %one = icmp sle i64 %parts, 1
  br i1 %one, label %whole, label %divided
whole:
  %status = call i32 %call(ptr %arguments, i64 0, i64 %extent)
  %bad = icmp ne i32 %status, 0
  br i1 %bad, label %stop, label %step.end
divided:
  br i1 %has.pool, label %shared, label %alone
shared:
  call void @share(ptr %pool, ptr %call, ptr %arguments, i64 %extent, i64 %parts, i64 %part)
  br label %step.end
alone:
  %start = phi i64 [ 0, %divided ], [ %start.next, %alone.next ]
  %start.more = icmp slt i64 %start, %extent
  br i1 %start.more, label %alone.next, label %step.end
alone.next:
  %start.next = add i64 %start, %part
  %too.far = icmp slt i64 %extent, %start.next
  %to = select i1 %too.far, i64 %extent, i64 %start.next
  %ignored = call i32 %call(ptr %arguments, i64 %start, i64 %to)
  br label %alone
step.end:
  %s.next = add i64 %s, 1
  br label %steps.loop
batch.end:
  %batch.next = add i64 %batch, 1
  br label %batches
stop:
  ret i64 %batch
end:
  ret i64 %last
}}
attributes #0 = {{ nounwind }}
"""


PATIENCE = 200
"""How often a thread looks again before it lets others run: on a busy machine two may share one processor."""


def driver_text(triple: str) -> str:
    """Return the code, with the processor's and the system's own ways of waiting."""
    loads = "\n".join(
        f"  %{name}.at = getelementptr i64, ptr %control, i64 {place}\n  %{name} = load i64, ptr %{name}.at"
        for name, place in Control.__members__.items()
    )
    waiting = {"pause": "", "give_way": "", "declarations": ""}
    if triple.startswith(("x86_64", "i686")):
        waiting["pause"] = "call void @llvm.x86.sse2.pause()"
        waiting["declarations"] = "declare void @llvm.x86.sse2.pause()"
    elif triple.startswith(("aarch64", "arm64")):
        waiting["pause"] = "call void @llvm.aarch64.hint(i32 1)"
        waiting["declarations"] = "declare void @llvm.aarch64.hint(i32)"
    if "windows" not in triple:
        waiting["give_way"] = "%ignored = call i32 @sched_yield()"
        waiting["declarations"] += "\ndeclare i32 @sched_yield()"
    return TEXT.format(loads=loads, **waiting, PATIENCE=PATIENCE, **Pool.__members__)
