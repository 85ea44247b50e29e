// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/context.h"

#include "core/talk/figures.h"

namespace klineage::run {

namespace {

Result<Ending> call(Context &context)
{
    switch (context.journal.settings().kind) {
    case Kind::Materialize:
        return materialize(context);
    case Kind::Deoptimize:
        return deoptimize(context);
    case Kind::Lift:
        return lift(context);
    case Kind::Admit:
        return admit(context);
    }
    return fail(ErrorCode::Internal, "The run is of no kind.");
}

} // namespace

Result<Ending> runProcedure(Context &context)
{
    Result<Ending> ending = call(context);
    Ending written = ending.value_or(Ending{"error", ending ? "" : ending.error().message});
    if (!written.reason.empty())
        written.reason = sentence(written.reason);
    if (Status finished = context.journal.finish(written); !finished && ending)
        return tl::unexpected(finished.error());
    return ending;
}

} // namespace klineage::run
