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

Result<Ending> perform(Context &context)
{
    Result<Ending> ending = call(context);
    const std::string text = !ending                  ? "error: " + sentence(ending.error().message)
                             : ending->reason.empty() ? ending->code
                                                      : ending->code + ": " + sentence(ending->reason);
    if (Status finished = context.journal.finish(text); !finished && ending)
        return tl::unexpected(finished.error());
    return ending;
}

} // namespace klineage::run
