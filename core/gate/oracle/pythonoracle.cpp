// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/oracle/pythonoracle.h"

#include "core/device/worker/messages.h"
#include "core/gate/check/parallel.h"
#include "core/gate/session/interpreter.h"
#include "core/gate/session/sandbox.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace klineage::gate {

using nlohmann::json;
using process::Deadline;

namespace {

constexpr int oracleProtocolVersion = 1;
constexpr std::size_t maxOracleMessageBytes = std::size_t{1} << 20;
constexpr std::size_t itemBytes = 8; ///< of an element in the memory: a double or a 64-bit integer
constexpr std::size_t oracleAlignment = 256;
constexpr std::size_t mostAskedTwice = std::size_t{1} << 22; ///< elements
constexpr double sameWithin = 1e-9;                          ///< of the largest value: sums in another order
constexpr const char *oracleScript =
#include "oraclescript.inc"
    ;

bool isWholeNumber(kernel::DType dtype)
{
    return !kernel::isFloat(dtype);
}

/// An input as the memory has it.
void putWide(const HostTensor &tensor, std::span<std::byte> to)
{
    const bool whole = isWholeNumber(tensor.dtype);
    parallelRanges(tensor.elements(), usualGrain, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            const double value = kernel::loadElement(tensor.bytes.data(), tensor.dtype, i);
            const auto bits = whole ? std::bit_cast<std::uint64_t>(static_cast<std::int64_t>(value))
                                    : std::bit_cast<std::uint64_t>(value);
            std::memcpy(to.data() + i * itemBytes, &bits, itemBytes);
        }
    });
}

bool saysTheSame(const std::vector<double> &a, const std::vector<double> &b)
{
    double largest = 0;
    for (const double value : a)
        largest = std::isfinite(value) ? std::max(largest, std::abs(value)) : largest;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (a[i] != b[i] && !(std::abs(a[i] - b[i]) <= sameWithin * largest))
            return false;
    }
    return a.size() == b.size();
}

} // namespace

/// Where the inputs and outputs of a case lie in the memory, and what is said of them.
struct OracleProcess::Layout {
    json arguments = json::array();
    json outputs = json::array();
    std::vector<std::pair<const HostTensor *, std::size_t>> inputs;
    std::vector<std::pair<const HostTensor *, std::size_t>> results;
    std::size_t bytes = 0;
};

tl::unexpected<Error> OracleProcess::failed(Error error)
{
    m_child.drain();
    error.message += lastWords(m_child.standardError().text);
    m_child.kill();
    m_alive = false;
    return tl::unexpected(std::move(error));
}

Result<std::unique_ptr<OracleProcess>> OracleProcess::start(const workload::PythonOracle &oracle,
                                                            const std::stop_token &stop,
                                                            const PythonOracleLimits &limits)
{
    const auto found = findInterpreter("run a Python oracle");
    if (!found)
        return tl::unexpected(found.error());
    auto sockets = process::socketPair();
    if (!sockets)
        return tl::unexpected(sockets.error());
    auto memory = process::SharedMemory::create(oracleAlignment);
    if (!memory)
        return tl::unexpected(memory.error());
    auto scratch = process::ScratchFolder::create();
    if (!scratch)
        return tl::unexpected(scratch.error());
    auto session = std::make_unique<OracleProcess>();
    session->m_limits = limits;
    session->m_scratch = std::move(*scratch);
    session->m_memory = std::move(*memory);
    process::ChildOptions options = pythonSandbox(found->folders, session->m_scratch.path());
    if (!found->userBase.empty())
        options.environment.emplace_back("PYTHONUSERBASE", found->userBase);
    options.command = {found->executable, "-u", "-B", "-c", oracleScript};
    options.inherited = {{sockets->second.get(), protocol::socketFd},
                         {session->m_memory.fd(), protocol::memoryFd}};
    auto child = process::ChildProcess::start(options);
    if (!child)
        return tl::unexpected(child.error());
    session->m_child = std::move(*child);
    sockets->second.close();
    session->m_pipe = process::FramePipe(std::move(sockets->first), maxOracleMessageBytes);
    const auto hello = session->m_pipe.receive(Deadline::in(limits.startSeconds), &session->m_child, stop);
    if (!hello)
        return session->failed(
            {hello.error().code == ErrorCode::Cancelled ? ErrorCode::Cancelled : ErrorCode::Unavailable,
             "Cannot run a Python oracle: " + found->executable
                 + " did not introduce itself: " + hello.error().message,
             {}});
    if (hello->value("version", json()) != oracleProtocolVersion)
        return session->failed(
            {ErrorCode::Protocol,
             "Cannot run a Python oracle: " + found->executable + " sent something that is no introduction.",
             {}});
    static const std::map<workload::PythonArrays, const char *> kinds = {
        {workload::PythonArrays::Numpy, "numpy"},
        {workload::PythonArrays::Torch, "torch"},
        {workload::PythonArrays::Lists, "lists"}};
    const auto loaded =
        session->ask({{"op", "load"}, {"source", oracle.source}, {"arrays", kinds.at(oracle.arrays)}},
                     limits.startSeconds, stop);
    if (!loaded)
        return tl::unexpected(loaded.error());
    const json text = loaded->value("text", json());
    session->m_version = text.is_string() ? text.get<std::string>().substr(0, 200) : "Python";
    return session;
}

Result<json> OracleProcess::ask(const json &request, double limitSeconds, const std::stop_token &stop)
{
    if (!m_alive)
        return fail(ErrorCode::Protocol, "The process of the Python oracle has ended.");
    m_child.forgetOutput();
    const Deadline deadline = Deadline::in(limitSeconds);
    Result<json> answer = json();
    if (auto sent = m_pipe.send(request, deadline, &m_child); !sent)
        answer = tl::unexpected(sent.error());
    else
        answer = m_pipe.receive(deadline, &m_child, stop);
    if (!answer) {
        const Error &error = answer.error();
        if (error.code == ErrorCode::Timeout)
            return failed({ErrorCode::Timeout,
                           "The Python oracle did not answer in "
                               + std::to_string(static_cast<int>(limitSeconds)) + " s.",
                           {}});
        return failed({error.code, "The Python oracle gave no answer: " + error.message, {}});
    }
    if (!m_pipe.quiet())
        return failed({ErrorCode::Protocol, "The Python oracle sent something that was not asked for.", {}});
    if (const auto error = answer->find("error"); error != answer->end() && error->is_string()) {
        const std::string text = error->get<std::string>().substr(0, 1000);
        const bool missing = text.starts_with("ModuleNotFoundError") || text.starts_with("ImportError");
        return fail(
            missing ? ErrorCode::Unavailable : ErrorCode::InvalidInput,
            "The Python oracle failed: " + text + "."
                + (missing ? " '" + pythonInterpreter()
                                 + "' has no such package: install it there (Debian: python3-numpy), or let "
                                   "KLINEAGE_PYTHON name another Python."
                           : ""));
    }
    if (answer->value("ok", json()) != true)
        return failed({ErrorCode::Protocol, "The Python oracle sent something that is no answer.", {}});
    return std::move(*answer);
}

Result<json> OracleProcess::tell(const std::string &function, const std::stop_token &stop)
{
    auto answer = ask({{"op", "tell"}, {"function", function}}, m_limits.callSeconds, stop);
    if (!answer)
        return answer;
    return answer->value("value", json());
}

Result<OracleProcess::Layout> OracleProcess::layout(const workload::Workload &workload,
                                                    const std::vector<HostTensor> &tensors) const
{
    Layout layout;
    std::map<std::string, std::size_t> offsets;
    for (const HostTensor &tensor : tensors) {
        offsets[tensor.name] = layout.bytes;
        const bool input = tensor.role == workload::Role::Input;
        (input ? layout.inputs : layout.results).emplace_back(&tensor, layout.bytes);
        if (!input)
            layout.outputs.push_back(
                {{"name", tensor.name}, {"shape", tensor.shape}, {"offset", layout.bytes}});
        layout.bytes +=
            (tensor.elements() * itemBytes + oracleAlignment - 1) / oracleAlignment * oracleAlignment;
    }
    if (layout.bytes > physicalMemory() / 2)
        return fail(ErrorCode::InvalidInput,
                    "A case of " + workload.name
                        + " is too large for its Python oracle: in double it is more than half of "
                          "this machine's memory.");
    const auto tensorNamed = [&](const std::string &name) {
        return std::find_if(tensors.begin(), tensors.end(),
                            [&](const HostTensor &tensor) { return tensor.name == name; });
    };
    std::vector<std::string> names = workload.python->arguments;
    if (names.empty()) {
        for (const auto &input : layout.inputs)
            names.push_back(input.first->name);
    }
    for (const std::string &name : names) {
        if (const auto tensor = tensorNamed(name); tensor != tensors.end())
            layout.arguments.push_back({{"dtype", kernel::toString(tensor->dtype)},
                                        {"shape", tensor->shape},
                                        {"offset", offsets.at(name)}});
        else
            layout.arguments.push_back({{"value", json::parse(name, nullptr, false)}});
    }
    return layout;
}

Result<Expected> OracleProcess::run(const workload::Workload &workload, const Layout &layout,
                                    const std::stop_token &stop)
{
    if (auto mapped = m_memory.ensure(layout.bytes); !mapped)
        return tl::unexpected(mapped.error());
    const auto memory = m_memory.bytes();
    for (const auto &[tensor, offset] : layout.inputs)
        putWide(*tensor, memory.subspan(offset));
    for (const auto &[tensor, offset] : layout.results) // all ones are NaN: what is not written shows
        std::fill_n(memory.begin() + static_cast<std::ptrdiff_t>(offset), tensor->elements() * itemBytes,
                    std::byte{0xff});
    const auto done = ask({{"op", "run"},
                           {"function", workload.python->function},
                           {"declared", workload.python->declared},
                           {"memory", layout.bytes},
                           {"arguments", layout.arguments},
                           {"outputs", layout.outputs}},
                          m_limits.callSeconds, stop);
    if (!done)
        return tl::unexpected(done.error());
    Expected expected;
    for (const auto &[tensor, offset] : layout.results) {
        std::vector<double> &values = expected[tensor->name];
        values.resize(tensor->elements());
        std::memcpy(values.data(), memory.data() + offset, values.size() * itemBytes);
        const auto bad =
            std::count_if(values.begin(), values.end(), [](double value) { return std::isnan(value); });
        if (bad > 0)
            return fail(ErrorCode::InvalidInput,
                        "The Python oracle of " + workload.name + " gives NaN for " + std::to_string(bad)
                            + " of " + std::to_string(values.size()) + " elements of " + tensor->name + ".");
    }
    return expected;
}

Result<Expected> OracleProcess::compute(const workload::Workload &workload,
                                        const std::vector<HostTensor> &tensors, const std::stop_token &stop)
{
    const auto where = layout(workload, tensors);
    if (!where)
        return tl::unexpected(where.error());
    auto expected = run(workload, *where, stop);
    if (!expected || m_agreed || where->bytes / itemBytes > mostAskedTwice)
        return expected;
    const auto again = run(workload, *where, stop);
    if (!again)
        return again;
    for (const auto &[name, values] : *expected) {
        if (!saysTheSame(values, again->at(name)))
            return fail(ErrorCode::InvalidInput,
                        "The Python oracle of " + workload.name
                            + " is not deterministic: asked again, it gives other values of " + name + ".");
    }
    m_agreed = true;
    return expected;
}

Result<Expected> PythonOracles::compute(const workload::Workload &workload,
                                        const std::vector<HostTensor> &tensors, const std::stop_token &stop)
{
    if (!m_process || !m_process->alive() || !(m_oracle == *workload.python)) {
        m_process.reset();
        auto started = OracleProcess::start(*workload.python, stop, m_limits);
        if (!started)
            return tl::unexpected(started.error());
        m_process = std::move(*started);
        m_oracle = *workload.python;
    }
    return m_process->compute(workload, tensors, stop);
}

} // namespace klineage::gate
