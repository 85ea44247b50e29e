// SPDX-License-Identifier: GPL-3.0-or-later
// Two passes over the parameters: what has the name of a tensor or axis is that; the rest is taken in order, where the type fits.
#include "core/workload/guess/guess.h"

#include "core/base/suggest.h"
#include "core/kernel/candidatewords.h"

#include <algorithm>

namespace klineage::workload {

namespace {

using kernel::DType;
using kernel::KernelParameter;
using Kind = KernelParameter::Kind;

std::string lowered(std::string_view text)
{
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    return out;
}

bool isOneOf(const std::string &word, std::initializer_list<const char *> words)
{
    return std::find(words.begin(), words.end(), word) != words.end();
}

bool fits(const KernelParameter &parameter, DType dtype)
{
    if (!parameter.element)
        return true;
    return *parameter.element == dtype || (*parameter.element == DType::F32 && dtype == DType::TF32);
}

bool isInteger(const KernelParameter &parameter)
{
    return parameter.kind == Kind::Scalar && *parameter.scalar != kernel::ScalarType::Float32
           && *parameter.scalar != kernel::ScalarType::Float64;
}

/// "R * C" of extents; those that are more than a name or a number in parentheses.
std::string product(const std::vector<std::string> &extents)
{
    std::string text;
    for (const std::string &extent : extents) {
        const bool isPlain = extent.find_first_of(" +-/%") == std::string::npos;
        if (extents.size() > 1 && extent == "1")
            continue;
        text += (text.empty() ? "" : " * ") + (isPlain || extents.size() == 1 ? extent : '(' + extent + ')');
    }
    return text.empty() ? "1" : text;
}

const char *const wordsOfCount[] = {"n",     "size",  "count", "len",      "length",
                                    "numel", "total", "num",   "elements", "nelem"};

class Guesser
{
public:
    Guesser(std::string_view code, kernel::Surface surface, const kernel::KernelFunction &kernel,
            const Workload &workload)
        : m_kernel(kernel)
        , m_workload(workload)
        , m_args(kernel.parameters.size())
        , m_why(kernel.parameters.size())
    {
        m_draft.surface = surface;
        m_draft.code = code;
        m_draft.kernel = kernel.name;
        for (const Tensor &tensor : workload.tensors) {
            if (tensor.role != Role::Output)
                continue;
            for (const kernel::Expression &extent : tensor.shape)
                m_extents.push_back(extent.text());
            break;
        }
    }

    PlanGuess run()
    {
        bindByName();
        bindTensorsInOrder();
        chooseBlock();
        chooseGrid();
        bindScalarsInOrder();
        bindTheRest();
        m_draft.args = m_args;
        return {m_draft, m_why};
    }

private:
    void bind(std::size_t i, const std::string &arg, const std::string &why)
    {
        m_args[i] = arg;
        m_why[i] = why;
        m_bound.insert(arg.substr(arg.find(' ') + 1));
    }

    [[nodiscard]] bool isFree(const std::string &name) const { return !m_bound.contains(name); }
    [[nodiscard]] std::string scalar(std::size_t i, const std::string &expression) const
    {
        return kernel::wordOf(kernel::scalarWords, *m_kernel.parameters[i].scalar) + ' ' + expression;
    }

    void bindByName()
    {
        for (const bool exactly : {true, false}) {
            const auto isSame = [exactly](const std::string &a, const std::string &b) {
                return exactly ? a == b : lowered(a) == lowered(b);
            };
            for (std::size_t i = 0; i < m_args.size(); ++i) {
                const KernelParameter &parameter = m_kernel.parameters[i];
                if (!m_args[i].empty())
                    continue;
                for (const Tensor &tensor : m_workload.tensors) {
                    if (parameter.kind == Kind::Pointer && isSame(tensor.name, parameter.name)
                        && isFree(tensor.name) && fits(parameter, tensor.dtype)
                        && !(parameter.isConst && tensor.role == Role::Output))
                        bind(i, tensor.name, "by its name");
                }
                for (const std::string &axis : m_workload.axes) {
                    if (m_args[i].empty() && isInteger(parameter) && isSame(axis, parameter.name)
                        && isFree(axis))
                        bind(i, scalar(i, axis), "by its name");
                }
            }
        }
    }

    /// The first tensor that is free, of the role, and of a type that fits; nullptr: none.
    [[nodiscard]] const Tensor *freeTensor(const KernelParameter &parameter, std::optional<Role> role) const
    {
        for (const Tensor &tensor : m_workload.tensors) {
            if (isFree(tensor.name) && (!role || tensor.role == *role) && fits(parameter, tensor.dtype))
                return &tensor;
        }
        return nullptr;
    }

    void bindTensorsInOrder()
    {
        // Without a single const nothing says what is read: then the order of the declaration is all there is.
        const bool saysNothing =
            std::none_of(m_kernel.parameters.begin(), m_kernel.parameters.end(),
                         [](const KernelParameter &p) { return p.kind == Kind::Pointer && p.isConst; });
        for (std::size_t i = 0; i < m_args.size(); ++i) {
            const KernelParameter &parameter = m_kernel.parameters[i];
            if (parameter.kind != Kind::Pointer || !m_args[i].empty())
                continue;
            const std::string name = lowered(parameter.name);
            std::optional<Role> role;
            if (parameter.isConst || isOneOf(name, {"in", "input", "src", "source", "inp"}))
                role = Role::Input;
            else if (!saysNothing || isOneOf(name, {"out", "output", "dst", "dest", "result", "res"}))
                role = Role::Output;
            const Tensor *tensor = freeTensor(parameter, role);
            const char *why = !role                  ? "by its place among the tensors"
                              : *role == Role::Input ? "by its place among the inputs"
                                                     : "by its place among the outputs";
            if (!tensor && !parameter.isConst) {
                tensor = freeTensor(parameter, std::nullopt);
                why = "the tensor that is left";
            }
            if (tensor)
                bind(i, tensor->name, why);
        }
    }

    void chooseBlock()
    {
        if (m_kernel.block[0] > 0) {
            for (const std::int64_t extent : m_kernel.block) {
                if (extent > 0)
                    m_draft.block.push_back(std::to_string(extent));
            }
            while (m_draft.block.size() > 1 && m_draft.block.back() == "1")
                m_draft.block.pop_back();
            return;
        }
        if (m_kernel.blockRank > 1)
            m_draft.block = {"16", "16"};
        else
            m_draft.block = {std::to_string(m_draft.surface.device().usualBlock)};
    }

    [[nodiscard]] std::string blockIn(std::size_t d) const
    {
        return d < m_draft.block.size() ? m_draft.block[d] : "1";
    }
    [[nodiscard]] std::string blocksFor(const std::string &extent, std::size_t d) const
    {
        return blockIn(d) == "1" ? extent : "ceil_div(" + extent + ", " + blockIn(d) + ")";
    }

    /// The grid covers the first output: its last extent is x, the one before y, all others z.
    void chooseGrid()
    {
        const auto leading = [this](std::size_t dropped) {
            const std::size_t kept = m_extents.size() > dropped ? m_extents.size() - dropped : 0;
            return product({m_extents.begin(), m_extents.begin() + static_cast<std::ptrdiff_t>(kept)});
        };
        if (m_kernel.gridRank == 1 && m_kernel.isByElement)
            m_draft.grid = {blocksFor(rowsAreLooped() ? leading(1) : leading(0), 0)};
        else if (m_kernel.gridRank == 1)
            m_draft.grid = {leading(1)}; // a block a row
        else {
            const std::string x = m_extents.back();
            m_draft.grid = {m_kernel.isByElement ? blocksFor(x, 0) : x};
            if (m_kernel.gridRank == 2 || m_extents.size() < 3)
                m_draft.grid.push_back(blocksFor(leading(1), 1));
            else {
                m_draft.grid.push_back(blocksFor(m_extents[m_extents.size() - 2], 1));
                m_draft.grid.push_back(blocksFor(leading(2), 2));
            }
        }
    }

    /// A thread goes over its row: the last extent, or the parameter that holds it, limits a loop.
    [[nodiscard]] bool rowsAreLooped() const
    {
        if (m_extents.size() < 2)
            return false;
        for (std::size_t i = 0; i < m_args.size(); ++i) {
            if (m_kernel.loopLimits.contains(m_kernel.parameters[i].name)
                && m_args[i].ends_with(' ' + m_extents.back()))
                return true;
        }
        const auto &parameters = m_kernel.parameters;
        return std::any_of(parameters.begin(), parameters.end(), [this](const KernelParameter &p) {
            return isInteger(p) && isOneOf(lowered(p.name), {"cols", "columns", "ncols", "n_cols", "width"})
                   && m_kernel.loopLimits.contains(p.name);
        });
    }

    void bindScalarsInOrder()
    {
        for (std::size_t i = 0; i < m_args.size(); ++i) {
            if (!m_args[i].empty() || !isInteger(m_kernel.parameters[i]) || m_extents.empty())
                continue;
            const std::string name = lowered(m_kernel.parameters[i].name);
            const bool isCount =
                std::find(std::begin(wordsOfCount), std::end(wordsOfCount), name) != std::end(wordsOfCount);
            const auto integers =
                std::count_if(m_kernel.parameters.begin(), m_kernel.parameters.end(), isInteger);
            if (isOneOf(name, {"rows", "nrows", "n_rows", "height", "num_rows"}))
                bind(i, scalar(i, product({m_extents.begin(), m_extents.end() - 1})),
                     "the rows of the output");
            else if (isOneOf(name, {"cols", "columns", "ncols", "n_cols", "width", "num_cols"}))
                bind(i, scalar(i, m_extents.back()), "the columns of the output");
            else if (isCount && integers == 1 && m_extents.size() > 1 && m_kernel.isByElement
                     && m_kernel.gridRank == 1)
                bind(i, scalar(i, product(m_extents)), "the elements of the output");
        }
        for (std::size_t i = 0; i < m_args.size(); ++i) {
            if (!m_args[i].empty() || !isInteger(m_kernel.parameters[i]))
                continue;
            const auto axis = std::find_if(m_workload.axes.begin(), m_workload.axes.end(),
                                           [this](const std::string &name) { return isFree(name); });
            if (axis != m_workload.axes.end())
                bind(i, scalar(i, *axis), "by its place among the axes");
        }
    }

    void bindTheRest()
    {
        for (std::size_t i = 0; i < m_args.size(); ++i) {
            const KernelParameter &parameter = m_kernel.parameters[i];
            if (!m_args[i].empty())
                continue;
            if (parameter.kind == Kind::Local) {
                const std::size_t bytes = kernel::sizeOf(parameter.element.value_or(DType::F32));
                std::string threads = product(m_draft.block);
                m_args[i] = "local " + threads + " * " + std::to_string(bytes);
                m_why[i] = "an element for each work-item of a group";
            } else {
                m_why[i] = argumentProblem(parameter, {}, m_workload, {});
            }
        }
        if (m_kernel.usesDynamicShared)
            m_draft.shared = product(m_draft.block) + " * 4";
    }

    const kernel::KernelFunction &m_kernel;
    const Workload &m_workload;
    std::vector<std::string> m_extents; ///< of the first output
    PlanDraft m_draft;
    std::vector<std::string> m_args;
    std::vector<std::string> m_why;
    std::set<std::string> m_bound; ///< tensors and axes that some argument passes
};

std::vector<std::string> tensorNames(const Workload &workload)
{
    std::vector<std::string> names;
    for (const Tensor &tensor : workload.tensors)
        names.push_back(tensor.name);
    return names;
}

std::string pointerProblem(const KernelParameter &parameter, const std::string &arg, const Workload &workload)
{
    const Tensor *tensor = workload.findTensor(arg);
    if (!tensor)
        return "Pass a tensor: " + quotedList(tensorNames(workload)) + '.';
    if (!fits(parameter, tensor->dtype))
        return "The kernel takes '" + parameter.type + "', and the tensor '" + arg + "' is of "
               + kernel::toString(tensor->dtype) + '.';
    if (parameter.isConst && tensor->role == Role::Output)
        return "The kernel only reads '" + parameter.name + "', and the tensor '" + arg + "' is an output.";
    return {};
}

std::string scalarProblem(const KernelParameter &parameter, const std::string &arg, const Workload &workload,
                          const std::vector<kernel::Tunable> &tunables)
{
    const std::string wanted = kernel::wordOf(kernel::scalarWords, *parameter.scalar);
    const std::size_t blank = arg.find(' ');
    const std::string word = arg.substr(0, blank);
    if (arg.empty() || blank == std::string::npos)
        return "Say what is passed, as in '" + wanted + ' '
               + (workload.axes.empty() ? std::string("1") : workload.axes.front()) + "'.";
    if (word != wanted)
        return "The kernel takes '" + parameter.type + "', which is passed as '" + wanted + "', not as '"
               + word + "'.";
    const Result<kernel::Expression> value = kernel::Expression::parse(arg.substr(blank + 1));
    if (!value)
        return value.error().message;
    for (const std::string &name : value->names()) {
        std::vector<std::string> known = workload.axes;
        for (const kernel::Tunable &tunable : tunables)
            known.push_back(tunable.name);
        for (const char *fact : {"sm_count", "warp_size", "max_shared"})
            known.emplace_back(fact);
        if (std::find(known.begin(), known.end(), name) == known.end())
            return noSuchName("axis, tunable or fact of the device", name, known);
    }
    return {};
}

} // namespace

std::string argumentProblem(const KernelParameter &parameter, const std::string &arg,
                            const Workload &workload, const std::vector<kernel::Tunable> &tunables)
{
    switch (parameter.kind) {
    case Kind::Pointer:
        return pointerProblem(parameter, arg, workload);
    case Kind::Scalar:
        return scalarProblem(parameter, arg, workload, tunables);
    case Kind::Local: {
        const Result<kernel::Expression> bytes =
            kernel::Expression::parse(arg.starts_with("local ") ? std::string_view(arg).substr(6) : "");
        return bytes ? std::string() : "Say its bytes, as in 'local 64 * 4'.";
    }
    case Kind::TensorMap:
        return "A tensor map has to be described in the plan: write it by hand.";
    case Kind::Other:
        break;
    }
    return "A plan cannot pass '" + parameter.type
           + "': it knows pointers, 32- and 64-bit whole numbers, float and double.";
}

PlanGuess guessPlan(std::string_view code, kernel::Surface surface, const kernel::KernelFunction &kernel,
                    const Workload &workload)
{
    return Guesser(code, surface, kernel, workload).run();
}

const kernel::KernelFunction *likelyKernel(const kernel::SourceOutline &outline)
{
    for (const kernel::KernelFunction &kernel : outline.kernels) {
        if (kernel.problem.empty())
            return &kernel;
    }
    return outline.kernels.empty() ? nullptr : &outline.kernels.front();
}

const Workload *likelyWorkload(const kernel::SourceOutline &outline, const std::vector<Workload> &workloads)
{
    const Workload *likely = nullptr;
    int most = 0;
    for (const Workload &workload : workloads) {
        int named = 0;
        for (const kernel::KernelFunction &kernel : outline.kernels) {
            // The kernel's own name counts most: a silu is for the workload silu.
            named += lowered(kernel.name).find(lowered(workload.name)) != std::string::npos ? 10 : 0;
            for (const KernelParameter &parameter : kernel.parameters) {
                const Tensor *tensor = workload.findTensor(parameter.name);
                named += tensor && fits(parameter, tensor->dtype);
                named += std::find(workload.axes.begin(), workload.axes.end(), parameter.name)
                         != workload.axes.end();
            }
        }
        if (named > most) {
            likely = &workload;
            most = named;
        }
    }
    return likely;
}

} // namespace klineage::workload
