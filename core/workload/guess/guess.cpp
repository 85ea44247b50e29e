// SPDX-License-Identifier: GPL-3.0-or-later
// Two passes over the parameters: what has the name of a tensor or axis is that; the rest is taken in order, where the type fits.
#include "core/workload/guess/guess.h"

#include "core/base/suggest.h"
#include "core/kernel/candidatewords.h"
#include "core/workload/guess/launchreading.h"

#include <algorithm>
#include <charconv>

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

const char *const wordsOfRows[] = {"rows", "nrows", "n_rows", "height", "num_rows"};
const char *const wordsOfColumns[] = {"cols", "columns", "ncols", "n_cols", "width", "num_cols"};

template <std::size_t n>
bool isAmong(const std::string &word, const char *const (&words)[n])
{
    return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

class Guesser
{
public:
    Guesser(std::string_view code, kernel::Surface surface, const kernel::KernelFunction &kernel,
            const Workload &workload, const kernel::HostLaunch *launch)
        : m_kernel(kernel)
        , m_workload(workload)
        , m_launch(launch)
        , m_args(kernel.parameters.size())
        , m_why(kernel.parameters.size())
        , m_hostNames(kernel.parameters.size())
    {
        for (std::size_t i = 0; launch && i < m_hostNames.size() && i < launch->args.size(); ++i)
            m_hostNames[i] = nameOfHostArgument(launch->args[i]);
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
        bindHostScalars(false);
        chooseBlock();
        chooseGrid();
        bindScalarsInOrder();
        bindHostScalars(true);
        bindTheRest();
        takeHostConfiguration();
        m_draft.args = m_args;
        return {m_draft, m_why, m_notices};
    }

private:
    void bind(std::size_t i, const std::string &arg, const std::string &why)
    {
        m_args[i] = arg;
        m_why[i] = why;
        m_bound.insert(arg.substr(arg.find(' ') + 1));
    }

    /// The parameter's own name, and what the host calls the argument.
    [[nodiscard]] std::vector<std::string> namesOf(std::size_t i) const
    {
        std::vector<std::string> names = {m_kernel.parameters[i].name};
        if (!m_hostNames[i].empty()) {
            names.push_back(m_hostNames[i]);
            names.push_back(plainHostName(m_hostNames[i]));
        }
        return names;
    }

    /// What is bound so far, in the host's words.
    [[nodiscard]] HostExpressions hostExpressions() const
    {
        HostExpressions host(*m_launch, m_workload);
        for (std::size_t i = 0; i < m_args.size(); ++i) {
            if (m_args[i].empty() || m_hostNames[i].empty())
                continue;
            const std::size_t blank = m_args[i].find(' ');
            if (m_kernel.parameters[i].kind == Kind::Pointer)
                host.knowTensor(m_hostNames[i], m_args[i]);
            else if (blank != std::string::npos && m_launch->args[i] == m_hostNames[i])
                host.know(m_hostNames[i], m_args[i].substr(blank + 1));
        }
        return host;
    }

    /// Scalars as the host passes them; plain numbers only when nothing else was found, but those that are no whole numbers at once.
    void bindHostScalars(bool withNumbers)
    {
        for (std::size_t i = 0; m_launch && i < m_args.size() && i < m_launch->args.size(); ++i) {
            if (!m_args[i].empty() || m_kernel.parameters[i].kind != Kind::Scalar)
                continue;
            HostExpressions host = hostExpressions();
            const auto expression = host.planExpression(m_launch->args[i]);
            if (!expression)
                continue;
            const bool isNumber = expression->find_first_not_of("0123456789 ()*+-/") == std::string::npos;
            if (!isNumber || withNumbers || !isInteger(m_kernel.parameters[i]))
                bind(i, scalar(i, *expression), "as the host passes it");
        }
    }

    /// Grid, block and shared memory of the host's launch, each where all of it can be told.
    void takeHostConfiguration()
    {
        if (!m_launch)
            return;
        HostExpressions host = hostExpressions();
        // A main() sets them to numbers of its own.
        for (const char *rows : wordsOfRows)
            host.suppose(rows, product({m_extents.begin(), m_extents.end() - (m_extents.empty() ? 0 : 1)}));
        for (const char *columns : wordsOfColumns)
            host.suppose(columns, m_extents.empty() ? "1" : m_extents.back());
        const auto take = [&](const std::vector<std::string> &written, const char *what,
                              std::vector<std::string> &field, bool coversOutput = false) {
            std::vector<std::string> read;
            for (const std::string &text : written) {
                const auto expression = host.planExpression(text);
                if (!expression) {
                    m_notices.push_back("The " + std::string(what) + " of the launch in line "
                                        + std::to_string(m_launch->line) + " names " + host.missing()
                                        + ", which nothing here says: what is proposed covers the output.");
                    return;
                }
                std::int64_t blocks = 0;
                const auto [end, problem] =
                    std::from_chars(expression->data(), expression->data() + expression->size(), blocks);
                if (coversOutput && problem == std::errc() && *end == '\0' && blocks > 1) {
                    m_notices.push_back("The grid of the launch in line " + std::to_string(m_launch->line)
                                        + " is " + *expression
                                        + " blocks for any shape: what is proposed covers the output.");
                    return;
                }
                read.push_back(*expression);
            }
            while (read.size() > 1 && read.back() == "1")
                read.pop_back();
            if (!read.empty() && read.size() <= 3)
                field = std::move(read);
        };
        take(m_launch->grid, "grid", m_draft.grid, true);
        take(m_launch->block, "block", m_draft.block);
        if (m_launch->shared.empty() || m_launch->shared == "0") {
            if (m_launch->shared == "0")
                m_draft.shared.clear();
            return;
        }
        std::vector<std::string> shared;
        take({m_launch->shared}, "shared memory", shared);
        if (!shared.empty())
            m_draft.shared = shared.front();
    }

    [[nodiscard]] bool isFree(const std::string &name) const { return !m_bound.contains(name); }
    [[nodiscard]] std::string scalar(std::size_t i, const std::string &expression) const
    {
        return kernel::wordOf(kernel::scalarWords, *m_kernel.parameters[i].scalar) + ' ' + expression;
    }

    void bindByName()
    {
        for (const bool exactly : {true, false}) {
            for (std::size_t i = 0; i < m_args.size(); ++i) {
                const KernelParameter &parameter = m_kernel.parameters[i];
                if (!m_args[i].empty())
                    continue;
                const std::vector<std::string> names = namesOf(i);
                const auto isNamed = [&](const std::string &other) {
                    return std::any_of(names.begin(), names.end(), [&](const std::string &name) {
                        return exactly ? name == other : lowered(name) == lowered(other);
                    });
                };
                for (const Tensor &tensor : m_workload.tensors) {
                    if (parameter.kind == Kind::Pointer && isNamed(tensor.name) && isFree(tensor.name)
                        && fits(parameter, tensor.dtype)
                        && !(parameter.isConst && tensor.role == Role::Output))
                        bind(i, tensor.name, "by its name");
                }
                for (const std::string &axis : m_workload.axes) {
                    if (m_args[i].empty() && isInteger(parameter) && isNamed(axis) && isFree(axis))
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
            const bool isCount = isAmong(name, wordsOfCount);
            const auto integers =
                std::count_if(m_kernel.parameters.begin(), m_kernel.parameters.end(), isInteger);
            if (isAmong(name, wordsOfRows))
                bind(i, scalar(i, product({m_extents.begin(), m_extents.end() - 1})),
                     "the rows of the output");
            else if (isAmong(name, wordsOfColumns))
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
    const kernel::HostLaunch *m_launch; ///< nullptr: no host code came with it
    std::vector<std::string> m_extents; ///< of the first output
    PlanDraft m_draft;
    std::vector<std::string> m_args;
    std::vector<std::string> m_why;
    std::vector<std::string> m_hostNames; ///< of the arguments in the launch; "": none
    std::vector<std::string> m_notices;
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
                    const Workload &workload, std::span<const kernel::HostLaunch> launches)
{
    const auto launch = std::find_if(launches.begin(), launches.end(),
                                     [&](const kernel::HostLaunch &l) { return l.kernel == kernel.name; });
    return Guesser(code, surface, kernel, workload, launch == launches.end() ? nullptr : &*launch).run();
}

const kernel::KernelFunction *likelyKernel(const kernel::SourceOutline &outline,
                                           std::span<const kernel::HostLaunch> launches)
{
    for (const kernel::HostLaunch &launch : launches) {
        for (const kernel::KernelFunction &kernel : outline.kernels) {
            if (kernel.name == launch.kernel && kernel.problem.empty())
                return &kernel;
        }
    }
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
