;;; memd.el --- Memories of your AI assistants, kept by memd  -*- lexical-binding: t; -*-

;; Version: 0.1.0
;; Package-Requires: ((emacs "27.1"))
;; Keywords: convenience, tools
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; memd keeps what assistants have learned as Markdown files, one directory for each project.
;; `memd-search' lists the memories of this project that match, `memd-show' opens one, and
;; `memd-save-region' makes one of the region.  The program memctl is needed; a daemon is started
;; when none runs.

;;; Code:

(require 'jsonrpc)
(require 'seq)
(require 'subr-x)

(defgroup memd nil
  "Memories of your AI assistants."
  :group 'tools
  :prefix "memd-")

(defcustom memd-memctl "memctl"
  "The program memctl."
  :type 'string)

(defcustom memd-timeout 10
  "Seconds to wait for an answer."
  :type 'number)

(defconst memd--forwarded
  '("MEMD_MEMORY_PATH" "CLAUDE_COWORK_MEMORY_PATH_OVERRIDE" "CLAUDE_CODE_REMOTE_MEMORY_DIR"
    "MEMD_BASE_DIR" "CLAUDE_CONFIG_DIR" "MEMD_DISABLE" "CLAUDE_CODE_DISABLE_AUTO_MEMORY"
    "CLAUDE_CODE_SIMPLE" "CLAUDE_CODE_REMOTE" "MEMD_EXTRA_GUIDELINES"
    "CLAUDE_COWORK_MEMORY_EXTRA_GUIDELINES")
  "What of the environment decides which memory directory is meant.")

(defvar memd--connection nil
  "The connection to the daemon, made when it is first needed.")

(defun memd--run (&rest arguments)
  "Return what memctl prints with ARGUMENTS."
  (unless (executable-find memd-memctl)
    (user-error "There is no %s; install memd or set `memd-memctl'" memd-memctl))
  (with-temp-buffer
    (apply #'call-process memd-memctl nil t nil arguments)
    (string-trim (buffer-string))))

(defun memd--open (path)
  "Return a process connected to PATH.
Nil if nobody listens there, or others can reach its folder."
  (when (= 0 (logand #o077 (or (file-modes (file-name-directory path)) #o777)))
    (ignore-errors
      (make-network-process :name "memd" :family 'local :service path :noquery t
                            :coding 'utf-8-emacs-unix))))

(defun memd--connect ()
  "Return the connection to the daemon; start a daemon where none runs."
  (unless (and memd--connection (jsonrpc-running-p memd--connection))
    (let* ((path (or (getenv "MEMD_SOCKET") (memd--run "config" "--socket-path")))
           (process (or (memd--open path)
                        (let ((said (memd--run "--quiet" "status")))
                          (or (memd--open path)
                              (user-error "Nobody answers at %s; %s" path said))))))
      (setq memd--connection
            (jsonrpc-process-connection :name "memd" :process process))
      (jsonrpc-request memd--connection 'hello
                       (list :client "emacs" :version emacs-version
                             :environment (memd--environment)))))
  memd--connection)

(defun memd--environment ()
  "Return the forwarded variables that are set as a property list."
  (seq-mapcat (lambda (name)
                (when-let ((value (getenv name)))
                  (list (intern (concat ":" name)) value)))
              memd--forwarded))

(defun memd-request (method &rest params)
  "Return the result of METHOD with PARAMS, a property list.
The project is the one of `default-directory'."
  (condition-case failure
      (jsonrpc-request (memd--connect) method
                       (append params (list :cwd (expand-file-name default-directory)))
                       :timeout memd-timeout)
    (jsonrpc-error
     (user-error "%s" (or (alist-get 'jsonrpc-error-message (cdr failure)) failure)))))

(define-derived-mode memd-list-mode tabulated-list-mode "Memd"
  "Memories in a list; \\<memd-list-mode-map>\\[memd-list-show] opens one."
  (setq tabulated-list-format [("Memory" 40 t) ("What it says" 0 nil)])
  (tabulated-list-init-header))

(define-key memd-list-mode-map (kbd "RET") #'memd-list-show)

(defun memd-list-show ()
  "Open the memory of this line."
  (interactive)
  (memd-show (or (tabulated-list-get-id) (user-error "No memory here"))))

;;;###autoload
(defun memd-search (query)
  "List the memories of this project that match QUERY, the best first."
  (interactive "sSearch memories for: ")
  (let ((hits (plist-get (memd-request 'memory.search :query query) :hits))
        (directory default-directory))
    (pop-to-buffer (get-buffer-create "*memd*"))
    (memd-list-mode)
    (setq default-directory directory
          tabulated-list-entries
          (mapcar (lambda (hit)
                    (let ((path (plist-get hit :path)))
                      (list path
                            (vector path (memd--one-line (plist-get hit :description))))))
                  hits))
    (tabulated-list-print)))

;;;###autoload
(defun memd-show (path)
  "Show the memory PATH of this project."
  (interactive (list (completing-read "Memory: " (memd--paths) nil t)))
  (let ((memory (memd-request 'memory.read :path path))
        (directory default-directory))
    (pop-to-buffer (get-buffer-create (format "*memd: %s*" path)))
    (let ((inhibit-read-only t))
      (erase-buffer)
      (insert (plist-get memory :content)))
    (goto-char (point-min))
    (text-mode)
    (view-mode)
    (setq default-directory directory)))

;;;###autoload
(defun memd-save-region (begin end type description)
  "Save the text from BEGIN to END as a new memory of TYPE, found by DESCRIPTION."
  (interactive
   (list (region-beginning) (region-end)
         (completing-read "Type: " '("project" "user" "feedback" "reference") nil t)
         (read-string "What does it say, in one line? ")))
  (let* ((name (memd--slug description))
         (saved (memd-request 'memory.write
                              :path (concat name ".md") :name name :type type
                              :description description :base_hash ""
                              :body (buffer-substring-no-properties begin end))))
    (message "memd: saved %s" (plist-get saved :path))))

(defun memd--paths ()
  "Return the paths of the memories of this project."
  (mapcar (lambda (memory) (plist-get memory :path))
          (plist-get (memd-request 'memory.list) :memories)))

(defun memd--one-line (text)
  "Return TEXT with each run of white space as one space."
  (replace-regexp-in-string "[[:space:]\n]+" " " text))

(defun memd--slug (description)
  "Return a file name in kebab case for DESCRIPTION."
  (let* ((words (replace-regexp-in-string "[^a-z0-9]+" "-" (downcase description)))
         (slug (string-trim (truncate-string-to-width (string-trim words "-+" "-+") 60) nil "-+")))
    (if (string-empty-p slug) (format-time-string "note-%Y%m%d-%H%M%S") slug)))

(provide 'memd)
;;; memd.el ends here
