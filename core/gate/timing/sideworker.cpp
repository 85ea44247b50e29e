// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/timing/sideworker.h"

namespace klineage::gate {

tl::expected<std::unique_ptr<SideWorker>, ProfileEnd> SideWorker::start(Culprit culprit,
                                                                        const TrialContext &context,
                                                                        const TimedBuffers &like)
{
    const auto session = context.further->add(context.stop, context.deadline);
    if (!session)
        return tl::unexpected(ProfileEnd{environmentEnd(session.error()), culprit});
    return std::unique_ptr<SideWorker>(new SideWorker(culprit, **session, context, like));
}

} // namespace klineage::gate
