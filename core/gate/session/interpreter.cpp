// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/session/interpreter.h"

#include "core/process/childprocess.h"

#include <nlohmann/json.hpp>

#include <cstdlib>

namespace klineage::gate {

namespace {

constexpr double interpreterSeconds = 60;

/// Prints where the interpreter lies and what it imports from.
constexpr const char *placesScript =
    "import json, site, sys\n"
    "paths = [sys.executable, sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix] + sys.path\n"
    "print(json.dumps({'executable': sys.executable, 'base': site.getuserbase(), 'paths': sorted({p for p in paths if p})}))";

} // namespace

std::string pythonInterpreter()
{
    const char *named = std::getenv("KLINEAGE_PYTHON");
    return named && *named ? named : "python3";
}

using nlohmann::json;

Result<Interpreter> findInterpreter(const std::string &purpose)
{
    const auto missing = [&purpose](const std::string &why) {
        return fail(ErrorCode::Unavailable,
                    "Cannot " + purpose + ": " + why + " It needs python3 on PATH, or KLINEAGE_PYTHON.");
    };
    process::ChildOptions options;
    options.command = {pythonInterpreter(), "-B", "-c", placesScript};
    auto child = process::ChildProcess::start(options);
    if (!child)
        return missing(child.error().message);
    const auto status = child->wait(process::Deadline::in(interpreterSeconds));
    if (!status)
        return missing(status.error().message);
    const json said = json::parse(child->standardOutput().text, nullptr, false);
    if (!status->ok() || !said.is_object())
        return missing(pythonInterpreter() + " ended with " + status->describe()
                       + " and did not say where it is.");
    try {
        Interpreter found;
        found.executable = said.at("executable").get<std::string>();
        found.userBase = said.at("base").is_string() ? said.at("base").get<std::string>() : std::string();
        for (const json &path : said.at("paths")) {
            // The root of a machine is no folder of an interpreter, whatever it says.
            if (const std::filesystem::path folder = path.get<std::string>();
                folder.is_absolute() && folder != folder.root_path())
                found.folders.push_back(folder);
        }
        return found;
    } catch (const json::exception &) {
        return missing(pythonInterpreter() + " said something else than where it is.");
    }
}

std::string lastLine(const std::string &text)
{
    const auto end = text.find_last_not_of(" \n\r\t");
    if (end == std::string::npos)
        return {};
    const auto begin = text.find_last_of('\n', end);
    return text.substr(begin == std::string::npos ? 0 : begin + 1,
                       end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

std::string lastWords(const std::string &text)
{
    const std::string last = lastLine(text);
    return last.empty() ? "" : " Its last words: " + last.substr(0, 400);
}

} // namespace klineage::gate
