// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/pool/gatespec.h"
#include "core/trial/request.h"
#include "core/trial/trial.h"

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace klineage::gate {

/// A gate as a pool sees it: a GateClient, or a fake one in tests. One thread at a time.
class GateLink
{
public:
    virtual ~GateLink() = default;
    GateLink(const GateLink &) = delete;
    GateLink &operator=(const GateLink &) = delete;

    /// Starts it and waits until it can be asked; says where that stands. asksDevices: the answer has what it can run on.
    [[nodiscard]] virtual tl::expected<std::vector<DeviceInfo>, GateProblem> start(
        bool asksDevices, const std::stop_token &stop,
        const std::function<void(const std::string &)> &say) = 0;
    /// As GatePool::run(). After an error that lost the gate isUp() is false.
    [[nodiscard]] virtual Result<Trial> run(const GateRequest &request, std::stop_token stop,
                                            ProgressCallback progress) = 0;
    virtual void prepare(const GateRequest &request) = 0;
    [[nodiscard]] virtual bool isUp() const = 0;

protected:
    GateLink() = default;
};

using LinkMaker = std::function<std::unique_ptr<GateLink>(const GateSpec &)>;

} // namespace klineage::gate
