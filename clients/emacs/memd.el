;;; memd.el --- memories of AI assistants, kept by memd  -*- lexical-binding: t; -*-
;; For Emacs 27.1 and newer: (load "…/memd.el").  memctl must be on the PATH.
;;   M-x memd-search       memories of this project that match; RET shows one
;;   M-x memd-show         shows a memory, completing its name
;;   M-x memd-save-region  saves the region as a new memory
;;   M-x memd-undo         takes the newest change back
;;; Code:
(defun memd-call (input &rest arguments)
  "Return what memctl prints for ARGUMENTS with INPUT, or signal its error."
  (with-temp-buffer
    (insert (or input ""))
    (unless (zerop (apply #'call-process-region nil nil "memctl" t '(t t) nil arguments))
      (user-error "%s" (string-trim (buffer-string))))
    (buffer-string)))

(defun memd-rows (member &rest arguments)
  "Return the rows MEMBER of what memctl answers to ARGUMENTS as lists of path and sentence."
  (mapcar (lambda (row) (list (alist-get 'path row) (alist-get 'description row)))
          (alist-get member (json-parse-string
                             (apply #'memd-call nil "--json" "--quiet" arguments)
                             :object-type 'alist :array-type 'list))))

(defun memd-search (words)
  "List the memories of this project that match WORDS."
  (interactive "sSearch memories for: ")
  (let ((rows (memd-rows 'hits "search" "--" words)))
    (with-current-buffer (get-buffer-create "*memd*")
      (tabulated-list-mode)
      (setq tabulated-list-format [("What it says" 70 t) ("Memory" 0 t)]
            tabulated-list-entries
            (mapcar (lambda (row) (list (car row) (vector (cadr row) (car row)))) rows))
      (local-set-key (kbd "RET") (lambda () (interactive) (memd-show (tabulated-list-get-id))))
      (tabulated-list-init-header)
      (tabulated-list-print)
      (pop-to-buffer (current-buffer)))))

(defun memd-show (path)
  "Show the memory PATH of this project."
  (interactive (list (completing-read "Memory: " (memd-rows 'memories "list") nil t)))
  (let ((text (memd-call nil "show" "--" path)))
    (with-current-buffer (get-buffer-create (format "*memd: %s*" path))
      (let ((inhibit-read-only t))
        (erase-buffer)
        (insert text))
      (view-mode)
      (pop-to-buffer (current-buffer)))))

(defun memd-save-region (begin end sentence)
  "Save the text from BEGIN to END as a new memory that says SENTENCE."
  (interactive "r\nsWhat does it say, in one sentence? ")
  (message "%s" (memd-call (buffer-substring-no-properties begin end)
                           "add" "--description" sentence "--body" "-")))

(defun memd-undo ()
  "Take the newest change of this project's memories back."
  (interactive)
  (message "%s" (memd-call nil "undo")))

(provide 'memd)
;;; memd.el ends here
